module kvserver

go 1.26.8

require (
	github.com/mattn/go-sqlite3 v1.14.53
	golang.org/x/text v0.44.0
)
