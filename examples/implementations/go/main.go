// Command server serves memcached's text protocol over the tables of a SQLite file.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// main opens the store, listens on the loopback address, and serves until a signal ends it.
// SIGHUP reloads the configuration tables.
func main() {
	path := flag.String("store", "", "SQLite file with the tables")
	port := flag.Int("port", 11211, "port on 127.0.0.1")
	flag.Parse()
	if *path == "" {
		log.Fatal("--store is missing")
	}
	store, err := OpenStore(*path)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		log.Fatal(err)
	}
	stats := &Stats{started: time.Now(), mostConnections: 1}
	stats.Reset()
	server := &Server{store: store, stats: stats, listener: listener.(*net.TCPListener), clients: map[*Client]bool{}}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	go func() {
		for range signals {
			if err := store.Reload(); err != nil {
				log.Print("reload: ", err)
			}
		}
	}()
	server.Serve()
}
