package main

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// version is what the command version replies.
const version = "1.0.0"

// prefixCounts counts the commands on keys with one prefix.
type prefixCounts struct{ gets, hits, sets, deletes int64 }

// Stats are the counters of the server.
type Stats struct {
	mu       sync.Mutex
	started  time.Time
	counts   map[string]int64
	prefixes map[string]prefixCounts
	// values that stats reset keeps
	connections, mostConnections int64
	verbosity                    atomic.Uint64
	detail, crawlerOff           atomic.Bool
}

// Add adds to a counter.
func (s *Stats) Add(name string, n int64) {
	s.mu.Lock()
	s.counts[name] += n
	s.mu.Unlock()
}

// Reset sets all counters to 0.
func (s *Stats) Reset() {
	s.mu.Lock()
	s.counts = map[string]int64{}
	s.prefixes = map[string]prefixCounts{}
	s.mu.Unlock()
}

// Connected counts a connection that comes or goes.
func (s *Stats) Connected(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connections += n
	s.mostConnections = max(s.mostConnections, s.connections+1)
	if n > 0 {
		s.counts["total_connections"]++
	}
}

// Prefix counts a command by the prefix of its key, up to a colon, while stats detail is on.
func (s *Stats) Prefix(key []byte, n prefixCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if prefix, _, found := bytes.Cut(key, []byte(":")); s.detail.Load() && found {
		p := s.prefixes[string(prefix)]
		s.prefixes[string(prefix)] = prefixCounts{p.gets + n.gets, p.hits + n.hits, p.sets + n.sets, p.deletes + n.deletes}
	}
}

// statRows are the rows of stats in their order; a row without a text is a counter.
const statRows = "pid uptime time version libevent pointer_size rusage_user rusage_system daemon_connections max_connections " +
	"curr_connections total_connections rejected_connections connection_structures cmd_get cmd_set cmd_flush " +
	"cmd_touch cmd_meta auth_cmds auth_errors get_hits get_misses get_expired get_flushed delete_misses delete_hits " +
	"incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits touch_misses " +
	"store_too_large store_no_memory bytes_read bytes_written limit_maxbytes accepting_conns listen_disabled_num " +
	"time_in_listen_disabled_us rejected_conns foreign_protocol_conns threads conn_yields evictions curr_items " +
	"total_items bytes reclaimed engine_maxbytes"

// Rows are the rows of stats as lines.
func (s *Stats) Rows(items int64) string {
	var usage syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	texts := map[string]string{
		"pid":                   strconv.Itoa(os.Getpid()),
		"uptime":                strconv.Itoa(int(now.Sub(s.started).Seconds())),
		"time":                  strconv.FormatInt(now.Unix(), 10),
		"version":               version,
		"libevent":              "none",
		"pointer_size":          "64",
		"rusage_user":           fmt.Sprintf("%d.%06d", usage.Utime.Sec, usage.Utime.Usec),
		"rusage_system":         fmt.Sprintf("%d.%06d", usage.Stime.Sec, usage.Stime.Usec),
		"daemon_connections":    "1",
		"max_connections":       "1024",
		"curr_connections":      strconv.FormatInt(s.connections+1, 10),
		"connection_structures": strconv.FormatInt(s.mostConnections, 10),
		"accepting_conns":       "1",
		"threads":               "1",
		"curr_items":            strconv.FormatInt(items, 10),
	}
	var b strings.Builder
	for _, name := range strings.Fields(statRows) {
		text, ok := texts[name]
		if !ok {
			text = strconv.FormatInt(s.counts[name], 10)
		}
		b.WriteString("STAT " + name + " " + text + "\r\n")
	}
	return b.String()
}

// showStats executes the command stats with the words behind it.
func (c *Client) showStats(_ string, words [][]byte) string {
	s := c.server.stats
	sub := first(words)
	for _, known := range []string{"items", "scrub", "sizes", "slabs", "vbucket"} {
		if strings.HasPrefix(sub, known) {
			sub = known
		}
	}
	switch sub {
	case "":
		c.out.WriteString(s.Rows(c.countItems()))
		return "END"
	case "reset":
		s.Reset()
		return "RESET"
	case "sizes", "items", "slabs":
		return "END"
	case "vbucket":
		return "STAT vb_0 active\r\nEND"
	case "scrub":
		return "STAT scrubber:status stopped\r\nEND"
	case "detail":
		return s.showDetail(first(words[1:]))
	case "cachedump":
		return cachedump(words[1:])
	case "settings":
		address := c.server.listener.Addr().(*net.TCPAddr)
		return fmt.Sprintf("STAT maxconns 1024\r\nSTAT tcpport %d\r\nSTAT inter %s\r\nSTAT verbosity %d\r\nSTAT evictions off\r\n"+
			"STAT domain_socket NULL\r\nSTAT shutdown_command no\r\nSTAT detail_enabled %s\r\nSTAT auth_enabled_ascii no\r\n"+
			"STAT item_size_max %d\r\nSTAT maxconns_fast no\r\nSTAT lru_crawler %s\r\nSTAT flush_enabled yes\r\n"+
			"STAT dump_enabled yes\r\nSTAT track_sizes no\r\nSTAT ssl_enabled no\r\nEND", address.Port, address.IP,
			min(s.verbosity.Load(), 2), yesOrNo[s.detail.Load()], itemMax, yesOrNo[!s.crawlerOff.Load()])
	case "conns":
		c.out.WriteString(c.server.connectionRows())
		return "END"
	}
	return "ERROR"
}

// yesOrNo are the texts of a setting that is on or off.
var yesOrNo = map[bool]string{true: "yes", false: "no"}

// first is the first of some words, or empty.
func first(words [][]byte) string {
	if len(words) == 0 {
		return ""
	}
	return string(words[0])
}

// countItems is the number of rows of the table of the mapping in use.
func (c *Client) countItems() (items int64) {
	attempt(func() {
		c.server.store.Read(c.current(), func(h *handle, t *Table) {
			items = h.query("SELECT count(*) FROM " + t.name)[0][0].(int64)
		})
	})
	return items
}

// showDetail executes stats detail and returns the reply.
func (s *Stats) showDetail(word string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch word {
	case "on", "off":
		s.detail.Store(word == "on")
		return "OK"
	case "dump":
		lines := []string{}
		for name, p := range s.prefixes {
			lines = append(lines, fmt.Sprintf("PREFIX %s get %d hit %d set %d del %d\r\n", name, p.gets, p.hits, p.sets, p.deletes))
		}
		sort.Strings(lines)
		return strings.Join(lines, "") + "END"
	}
	return "CLIENT_ERROR usage: stats detail on|off|dump"
}

// cachedump is the reply to stats cachedump: no slab class has items.
func cachedump(words [][]byte) string {
	if len(words) < 2 {
		return "CLIENT_ERROR bad command line"
	}
	class, ok := unsigned64(words[0])
	if _, ok2 := unsigned64(words[1]); !ok || !ok2 {
		return badFormat
	} else if class >= 64 {
		return "CLIENT_ERROR Illegal slab id"
	}
	return "END"
}

// crawler executes lru_crawler with the words behind it.
func (c *Client) crawler(_ string, words [][]byte) string {
	off := &c.server.stats.crawlerOff
	word := first(words)
	if len(words) == 1 && word == "disable" {
		off.Store(true)
		return "OK"
	} else if len(words) == 1 && word == "enable" && !off.Swap(false) {
		return "ERROR failed to start lru crawler thread"
	} else if len(words) == 1 && word == "enable" {
		return "OK"
	} else if len(words) != 2 {
		return "ERROR"
	}
	classes := string(words[1])
	all := classes == "all" || classes == "hash"
	n, ok := unsigned64(words[1])
	switch setting, listing := word == "sleep" || word == "tocrawl", word == "metadump" || word == "crawl"; {
	case !setting && !listing:
		return "ERROR"
	case setting && !ok:
		return badFormat
	case word == "sleep" && uint32(n) > 1000000:
		return "CLIENT_ERROR sleep must be one second or less"
	case listing && off.Load():
		return "CLIENT_ERROR lru crawler disabled"
	case listing && !all && !slabClasses(classes):
		return "BADCLASS invalid class id"
	case word == "metadump" && all:
		return c.metadump()
	case word == "metadump":
		return "END"
	}
	return "OK"
}

// slabClasses tells whether a word has numbers from 1 to 63, separated by commas.
func slabClasses(word string) bool {
	found := strings.FieldsFunc(word, func(r rune) bool { return r == ',' })
	for _, part := range found {
		if n, err := strconv.Atoi(part); err != nil || n < 1 || n > 63 {
			return false
		}
	}
	return len(found) > 0
}

// metadump lists the items of the mapping in use.
func (c *Client) metadump() string {
	c.server.store.Read(c.current(), func(h *handle, t *Table) {
		now := time.Now().Unix()
		for _, cells := range h.query(t.selection()) {
			r := t.readRow(cells, c.server.store.Options().separator)
			if len(r.key) > 0 && len(r.key) <= maxKey && !bytes.ContainsAny(r.key, "\x00\n ") && !t.expired(r) {
				expiry := int64(-1)
				if r.expiry > 0 {
					expiry = r.expiry
				}
				fmt.Fprintf(&c.out, "key=%s exp=%d la=%d cas=%d fetch=no cls=0 size=%d\n", strings.ReplaceAll(url.QueryEscape(string(r.key)), "+", "%20"), expiry, now, r.cas,
					len(r.key)+len(r.value))
			}
		}
	})
	return "END"
}
