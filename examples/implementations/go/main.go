// Command server serves memcached's text protocol over the tables of a SQLite file.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
)

// main opens the store, listens on the loopback address, and serves until a signal ends it.
// SIGHUP reloads the configuration tables.
func main() {
	path := flag.String("store", "", "SQLite file with the tables")
	port := flag.Int("port", 11211, "port on 127.0.0.1")
	flag.Parse()
	if *path == "" {
		fmt.Fprintln(os.Stderr, "server: --store is missing")
		os.Exit(2)
	}
	store, err := OpenStore(*path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
	server := NewServer(store, listener.(*net.TCPListener))
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for s := range signals {
			if s != syscall.SIGHUP {
				store.Close()
				os.Exit(0)
			}
			if err := store.Reload(); err != nil {
				fmt.Fprintln(os.Stderr, "server: reload:", err)
			}
		}
	}()
	server.Serve()
}
