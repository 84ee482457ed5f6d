package main

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/mattn/go-sqlite3"
)

// handle is one connection to the SQLite file, used by one goroutine at a time.
type handle struct {
	mu         sync.Mutex
	conn       *sqlite3.SQLiteConn
	collations map[string]bool
	version    int64               // of the schema
	tables     map[*Mapping]*Table // as the schema of that version has them
}

// openHandle opens the file.
func openHandle(path string) (*handle, error) {
	conn, err := (&sqlite3.SQLiteDriver{}).Open("file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23").Replace(path) +
		"?_busy_timeout=50000&_foreign_keys=1&_journal_mode=WAL&_synchronous=NORMAL")
	if err != nil {
		return nil, err
	}
	return &handle{conn: conn.(*sqlite3.SQLiteConn), collations: map[string]bool{}, version: -1}, nil
}

// failure is an error of the database on its way to the function that called Read or Write.
type failure struct{ err error }

// check ends the work of a handle if an error occurred.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// fail ends the work with a reply to the client.
func fail(format string, args ...any) { check(refuse(format, args...)) }

// attempt runs a function and returns the error that ended it.
func attempt(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = f.err
		}
	}()
	f()
	return nil
}

// query returns all rows of a statement.
func (h *handle) query(text string, args ...driver.Value) (all [][]driver.Value) {
	rows, err := h.conn.Query(text, args)
	check(err)
	defer rows.Close()
	for {
		row := make([]driver.Value, len(rows.Columns()))
		if err := rows.Next(row); err == io.EOF {
			return all
		} else {
			check(err)
		}
		all = append(all, row)
	}
}

// exec runs a statement and returns the number of changed rows.
func (h *handle) exec(text string, args ...driver.Value) int64 {
	result, err := h.conn.Exec(text, args)
	check(err)
	n, _ := result.RowsAffected()
	return n
}

var collatePattern = regexp.MustCompile("(?i)\\bCOLLATE\\s+[\"'`\\[]?([A-Za-z0-9_]+)")

// refresh forgets what it knows of the tables if SQL has changed the schema, and registers the collations that it names.
func (h *handle) refresh() {
	version := h.query("PRAGMA schema_version")[0][0].(int64)
	if version == h.version {
		return
	}
	for _, row := range h.query("SELECT sql FROM sqlite_master WHERE sql LIKE '%collate%'") {
		for _, match := range collatePattern.FindAllStringSubmatch(cell(row[0]), -1) {
			name := strings.ToLower(match[1])
			if name != "nocase" && name != "rtrim" && name != "binary" && !h.collations[name] {
				check(h.conn.RegisterCollation(match[1], collation(name)))
				h.collations[name] = true
			}
		}
	}
	h.tables, h.version = map[*Mapping]*Table{}, version
}

// table returns the table of a mapping as it is now.
func (h *handle) table(m *Mapping) *Table {
	h.refresh()
	if h.tables[m] == nil {
		h.tables[m] = h.describe(m)
	}
	return h.tables[m]
}

// Store is the SQLite file with its mappings. A handle reads, and another one writes.
type Store struct {
	reader, writer  *handle
	options         atomic.Pointer[Options]
	casNext, casEnd uint64
}

// Options are what a reload has read from the configuration tables.
type Options struct {
	delimiter, separator string
	first                *Mapping // the default mapping
	mappings             sync.Map // those in use by name, which stay as they are until the next reload
}

// configuration creates the tables that an empty file lacks, each with its default rows.
var configuration = []struct{ table, create string }{
	{"containers", `CREATE TABLE IF NOT EXISTS containers (
    name VARCHAR(50) NOT NULL COLLATE NOCASE PRIMARY KEY, db_schema VARCHAR(250) NOT NULL, db_table VARCHAR(250) NOT NULL,
    key_columns VARCHAR(250) NOT NULL, value_columns VARCHAR(250), flags VARCHAR(250) DEFAULT '0', cas_column VARCHAR(250),
    expire_time_column VARCHAR(250), unique_idx_name_on_key VARCHAR(250) NOT NULL);
CREATE TABLE IF NOT EXISTS demo_test (c1 VARCHAR(32) NOT NULL COLLATE NOCASE PRIMARY KEY, c2 VARCHAR(1024), c3 INT,
    c4 BIGINT UNSIGNED, c5 INT);
INSERT OR IGNORE INTO demo_test VALUES ('AA', 'HELLO, HELLO', 8, 0, 0);
INSERT INTO containers VALUES ('aaa', 'test', 'demo_test', 'c1', 'c2', 'c3', 'c4', 'c5', 'PRIMARY');`},
	{"config_options", `CREATE TABLE config_options (name VARCHAR(50) NOT NULL PRIMARY KEY, value VARCHAR(50));
INSERT INTO config_options VALUES ('separator', '|'), ('table_map_delimiter', '.');`},
	{"cache_policies", `CREATE TABLE cache_policies (policy_name VARCHAR(40) PRIMARY KEY,
    get_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (get_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    set_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (set_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    delete_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (delete_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')),
    flush_policy "ENUM('innodb_only','cache_only','caching','disabled')" NOT NULL
        CHECK (flush_policy IN ('innodb_only', 'cache_only', 'caching', 'disabled')));
INSERT INTO cache_policies VALUES ('cache_policy', 'innodb_only', 'innodb_only', 'innodb_only', 'innodb_only');`},
	{"server_cas", `CREATE TABLE server_cas (reserved BIGINT NOT NULL);
INSERT INTO server_cas VALUES (1);`},
}

// OpenStore opens the file, creates the configuration tables that it lacks, and reads them.
func OpenStore(path string) (*Store, error) {
	writer, err := openHandle(path)
	if err != nil {
		return nil, err
	}
	err = attempt(func() {
		for _, c := range configuration {
			if writer.query("SELECT 1 FROM sqlite_master WHERE name = ?", c.table) == nil {
				_, err := writer.conn.Exec("BEGIN IMMEDIATE;\n"+c.create+"\nCOMMIT;", nil)
				check(err)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	reader, err := openHandle(path)
	if err != nil {
		return nil, err
	}
	s := &Store{reader: reader, writer: writer}
	return s, s.Reload()
}

// option reads an option of the configuration, of which the first 32 bytes count.
func (h *handle) option(name, fallback string) string {
	rows := h.query("SELECT substr(CAST(value AS BLOB), 1, 32) FROM config_options WHERE name = ? COLLATE BINARY", name)
	if len(rows) == 0 || cell(rows[0][0]) == "" {
		return fallback
	}
	return cell(rows[0][0])
}

// Reload reads the configuration tables again and forgets the mappings in use.
func (s *Store) Reload() error {
	h := s.reader
	h.mu.Lock()
	defer h.mu.Unlock()
	return attempt(func() {
		o := &Options{delimiter: h.option("table_map_delimiter", "."), separator: h.option("separator", "|")}
		for _, m := range h.containers("ORDER BY name = 'default' COLLATE BINARY DESC, name") {
			if err := attempt(func() { h.table(m) }); err != nil {
				log.Printf("mapping %q is rejected: %v", m.name, err)
			} else if o.first == nil {
				o.first = m
			}
		}
		if o.first == nil {
			check(errors.New("no row of containers is usable"))
		}
		o.mappings.Store(foldName(o.first.name), o.first)
		s.options.Store(o)
	})
}

// cell is the text of a cell of a table.
func cell(v driver.Value) string {
	if data, ok := v.([]byte); ok {
		return string(data)
	} else if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

// foldName turns the name of a mapping into the form that ignores the case of ASCII letters.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return unicode.ToLower(r)
		}
		return r
	}, name)
}

// Options returns what the last reload has read.
func (s *Store) Options() *Options { return s.options.Load() }

// Find returns the mapping of a name, nil if containers has no usable row of that name.
func (s *Store) Find(name string) (m *Mapping) {
	options := s.Options()
	if known, ok := options.mappings.Load(foldName(name)); ok {
		return known.(*Mapping)
	}
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	attempt(func() {
		for _, row := range s.reader.containers("WHERE name = ?", name) {
			s.reader.table(row)
			m = row
			options.mappings.Store(foldName(name), m)
		}
	})
	return m
}

// Read runs a function on the table of a mapping; it sees the rows that are committed.
func (s *Store) Read(m *Mapping, f func(h *handle, t *Table)) {
	s.reader.mu.Lock()
	defer s.reader.mu.Unlock()
	f(s.reader, s.reader.table(m))
}

// Write runs a function in a transaction on the table of a mapping; a failure undoes its writes.
func (s *Store) Write(m *Mapping, f func(h *handle, t *Table)) {
	h := s.writer
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.casNext == s.casEnd {
		// the file has the end of the numbers first, so that none is used twice
		s.casEnd = uint64(h.query("UPDATE server_cas SET reserved = reserved + 100 RETURNING reserved")[0][0].(int64))
		s.casNext = s.casEnd - 100
	}
	t := h.table(m)
	h.exec("BEGIN IMMEDIATE")
	defer func() {
		if !h.conn.AutoCommit() {
			attempt(func() { h.exec("ROLLBACK") })
		}
	}()
	f(h, t)
	h.exec("COMMIT")
}

// NextCas returns a cas number that no item ever had. A function of Write can call it once.
func (s *Store) NextCas() uint64 {
	s.casNext++
	return s.casNext - 1
}

// asReply turns an error into the reply to the client.
func asReply(err error) string {
	var known *refusal
	var e sqlite3.Error
	if errors.As(err, &known) {
		return known.text
	} else if errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked) {
		return "SERVER_ERROR lock wait timeout"
	}
	return "SERVER_ERROR " + strings.NewReplacer("\r", " ", "\n", " ").Replace(err.Error())
}
