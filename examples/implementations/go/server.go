package main

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	itemMax = 1 << 20  // bytes of the largest value
	lineMax = 1 << 10  // bytes of a line that is no get, while it has no end
	getMax  = 64 << 20 // bytes of a get line
)

// Server accepts connections and keeps what they share.
type Server struct {
	store    *Store
	stats    *Stats
	listener *net.TCPListener
	mu       sync.Mutex
	clients  map[*Client]bool
}

// Serve accepts connections without end.
func (s *Server) Serve() {
	for {
		conn, err := s.listener.AcceptTCP()
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		options := s.store.Options()
		c := &Client{server: s, conn: conn, mapping: options.first, options: options}
		c.state.Store("conn_read")
		c.last.Store(time.Now().Unix())
		s.mu.Lock()
		s.clients[c] = true
		s.mu.Unlock()
		s.stats.Connected(1)
		go c.run()
	}
}

// descriptor is the number of a socket's file descriptor.
func descriptor(socket syscall.Conn) (fd int) {
	if raw, err := socket.SyscallConn(); err == nil {
		raw.Control(func(n uintptr) { fd = int(n) })
	}
	return fd
}

// connectionRows are the rows of stats conns as lines.
func (s *Server) connectionRows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := map[int]string{}
	now := time.Now().Unix()
	listening := "tcp:" + s.listener.Addr().String()
	fd := descriptor(s.listener)
	rows[fd] = fmt.Sprintf("STAT %d:addr %s\r\nSTAT %[1]d:state conn_listening\r\nSTAT %[1]d:secs_since_last_cmd %[3]d\r\n",
		fd, listening, now-s.stats.started.Unix())
	for c := range s.clients {
		fd := descriptor(c.conn)
		rows[fd] = fmt.Sprintf("STAT %d:addr tcp:%s\r\nSTAT %[1]d:listen_addr %[3]s\r\nSTAT %[1]d:state %[4]s\r\n"+
			"STAT %[1]d:secs_since_last_cmd %[5]d\r\n", fd, c.conn.RemoteAddr(), listening, c.state.Load(), now-c.last.Load())
	}
	var b strings.Builder
	for _, fd := range slices.Sorted(maps.Keys(rows)) {
		b.WriteString(rows[fd])
	}
	return b.String()
}

// Client is one connection.
type Client struct {
	server   *Server
	conn     *net.TCPConn
	in       []byte // received and not processed
	out      bytes.Buffer
	mapping  *Mapping // that keys without @@ belong to
	options  *Options // that the mapping is from
	silent   bool     // the command says noreply
	closing  bool
	skipping int // bytes to drop before the next line
	state    atomic.Value
	last     atomic.Int64 // time of the last command
}

// gone is what ends the work on a connection that can be read or written no more.
type gone struct{}

// current is the mapping that the connection is bound to.
func (c *Client) current() *Mapping {
	if c.options != c.server.store.Options() {
		m := c.server.store.Find(c.mapping.name)
		if m == nil {
			fail("SERVER_ERROR mapping %s is no longer in containers: bind another", c.mapping.name)
		}
		c.bind(m)
	}
	return c.mapping
}

// bind binds the connection to a mapping.
func (c *Client) bind(m *Mapping) {
	c.mapping, c.options = m, c.server.store.Options()
}

// flush sends the replies.
func (c *Client) flush() {
	n, err := c.conn.Write(c.out.Bytes())
	c.server.stats.Add("bytes_written", int64(n))
	c.out.Reset()
	if err != nil {
		panic(gone{})
	}
}

// fill receives more, after it has sent the replies.
func (c *Client) fill() {
	c.flush()
	chunk := make([]byte, 65536)
	n, _ := c.conn.Read(chunk)
	c.in = append(c.in, chunk[:n]...)
	c.server.stats.Add("bytes_read", int64(n))
	if n == 0 {
		panic(gone{})
	}
}

// data receives a data block with the two bytes that follow it.
func (c *Client) data(length int) []byte {
	c.state.Store("conn_nread")
	for len(c.in) < length {
		c.fill()
	}
	block := bytes.Clone(c.in[:length])
	c.in = c.in[length:]
	return block
}

// skip receives bytes and drops them.
func (c *Client) skip(length int) {
	c.state.Store("conn_nread")
	for length > len(c.in) {
		length -= len(c.in)
		c.in = nil
		c.fill()
	}
	c.in = c.in[length:]
}

// line receives a line and returns it without its end.
func (c *Client) line() []byte {
	searched := 0
	for {
		if i := bytes.IndexByte(c.in[searched:], '\n'); i >= 0 {
			line := c.in[:searched+i]
			c.in = c.in[searched+i+1:]
			return bytes.TrimSuffix(line, []byte("\r"))
		}
		searched = len(c.in)
		get := bytes.HasPrefix(c.in, []byte("get ")) || bytes.HasPrefix(c.in, []byte("gets "))
		if searched > lineMax && !get || searched > getMax {
			panic(gone{})
		}
		c.fill()
	}
}

// run reads and executes commands until the connection ends.
func (c *Client) run() {
	defer func() {
		if r := recover(); r != nil && r != (gone{}) {
			panic(r)
		}
		c.server.mu.Lock()
		delete(c.server.clients, c)
		c.server.mu.Unlock()
		c.server.stats.Connected(-1)
		c.conn.Close()
	}()
	c.opening()
	for !c.closing {
		c.state.Store("conn_read")
		line := c.line()
		c.state.Store("conn_parse_cmd")
		c.last.Store(time.Now().Unix())
		c.silent = false
		var last string
		if err := attempt(func() { last = c.execute(line) }); err != nil {
			last = asReply(err)
		}
		if !c.silent {
			c.out.WriteString(last + "\r\n")
		}
		c.skip(c.skipping)
		c.skipping = 0
	}
	c.flush()
}

// opening waits for the first bytes and closes the connection if they are of another protocol.
func (c *Client) opening() {
	c.fill()
	for c.in[0] == 0x16 && len(c.in) < 2 {
		c.fill()
	}
	if bytes.IndexByte([]byte("*SP"), c.in[0]) >= 0 {
		line := bytes.Clone(c.line()) // these openings are lines
		c.in = append(append(line, '\n'), c.in...)
	}
	if c.in[0] == 0x16 && c.in[1] == 3 {
		c.out.WriteString("ERROR\r\n")
	} else if !foreign.Match(c.in) && c.in[0] != 0x80 {
		return
	}
	c.server.stats.Add("foreign_protocol_conns", 1)
	c.flush()
	panic(gone{})
}

// foreign matches the first bytes of SSH, RESP and the PROXY protocol.
var foreign = regexp.MustCompile(`^(SSH-|PROXY |\*[0-9]+\r?\n|\r\n\r\n\x00\r\nQUIT\n)`)
