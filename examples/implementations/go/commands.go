package main

import (
	"bytes"
	"fmt"
	"math"
)

const badFormat = "CLIENT_ERROR bad command line format"

// handler is what the server does with the lines that begin with a word.
type handler struct {
	least, most int // number of words behind the first one
	run         func(c *Client, verb string, words [][]byte) string
}

const many = math.MaxInt // words of a line

// commands are the first words of the lines that the server knows. A command gets the words behind it and returns the
// last line of its reply.
var commands = map[string]handler{
	"get": {1, many, (*Client).get}, "gets": {1, many, (*Client).get}, "bget": {1, many, (*Client).get},
	"set": {4, 5, (*Client).storage}, "add": {4, 5, (*Client).storage}, "replace": {4, 5, (*Client).storage},
	"append": {4, 5, (*Client).storage}, "prepend": {4, 5, (*Client).storage}, "cas": {5, 6, (*Client).storage},
	"incr": {2, 3, (*Client).arithmetic}, "decr": {2, 3, (*Client).arithmetic},
	"delete": {1, 3, (*Client).delete}, "flush_all": {0, 2, (*Client).flushAll}, "bind": {1, 1, (*Client).bindCommand},
	"verbosity": {1, 2, (*Client).verbosity}, "cache_memlimit": {1, 2, (*Client).memlimit},
	"stats": {0, many, (*Client).showStats}, "lru_crawler": {1, 2, (*Client).crawler},
	"version": answer("VERSION " + version), "refresh_certs": answer("Error TLS not enabled"),
	"shutdown": answer("ERROR: shutdown not enabled"),
	"quit":     {0, many, func(c *Client, _ string, _ [][]byte) string { c.silent, c.closing = true, true; return "" }},
}

// answer handles a command that has one reply, whatever words follow.
func answer(reply string) handler {
	return handler{0, many, func(*Client, string, [][]byte) string { return reply }}
}

// execute executes a line and returns the last line of its reply.
func (c *Client) execute(line []byte) string {
	words := splitWords(line)
	if len(words) == 0 {
		return "ERROR"
	}
	verb, behind := string(words[0]), words[1:]
	command, known := commands[verb]
	hasNul := bytes.IndexByte(line, 0) >= 0
	if known && !hasNul && len(behind) >= command.least && len(behind) <= command.most {
		return command.run(c, verb, behind)
	} else if known && command.least >= 4 { // a storage command
		c.skipBlock(behind)
	}
	if hasNul {
		return "CLIENT_ERROR the line has a NUL byte"
	} else if !known && bytes.HasPrefix(words[len(words)-1], []byte("HTTP/")) {
		c.server.stats.Add("foreign_protocol_conns", 1)
		c.silent, c.closing = true, true
	}
	return "ERROR"
}

// skipBlock skips the data block of a refused storage line, if the line has a valid length.
func (c *Client) skipBlock(words [][]byte) {
	if len(words) >= 4 && bytes.IndexByte(words[3], 0) < 0 {
		if length, ok := lengthNumber(words[3]); ok {
			c.skipping = length + 2
		}
	}
}

// saysNoreply makes the client silent if the last word is noreply.
func (c *Client) saysNoreply(words [][]byte) bool {
	c.silent = len(words) > 0 && string(words[len(words)-1]) == "noreply"
	return c.silent
}

// target is where a key word leads.
type target struct {
	mapping *Mapping // nil if it is unknown
	key     []byte
	refused string // what a command on rows replies to the word, if it has no key
}

// aim splits a word at the first delimiter behind the name of a mapping, and binds the connection to the mapping. A word
// without key is refused: with the reply bare, or without a binding if it has a delimiter. Both are for a get without bare.
func (c *Client) aim(word []byte, bare string) target {
	if len(word) < 3 || word[0] != '@' || word[1] != '@' {
		return target{mapping: c.current(), key: word}
	}
	name, key, delimited := bytes.Cut(word[2:], []byte(c.server.store.Options().delimiter))
	m := c.server.store.Find(string(name))
	if m == nil || len(name) == 0 {
		return target{key: word, refused: "NOT_FOUND"}
	}
	if delimited && len(key) == 0 && bare != "" {
		return target{mapping: m, refused: "CLIENT_ERROR no key behind the delimiter in " + string(word)}
	}
	c.bind(m)
	if len(key) > 0 {
		bare = ""
	}
	return target{mapping: m, key: key, refused: bare}
}

// item writes a row as part of the reply to a get.
func (c *Client) item(key []byte, flags uint32, value []byte, cas uint64, withCas bool) {
	fmt.Fprintf(&c.out, "VALUE %s %d %d", key, flags, len(value))
	if withCas {
		fmt.Fprintf(&c.out, " %d", cas)
	}
	fmt.Fprintf(&c.out, "\r\n%s\r\n", value)
}

// get executes get, gets and bget.
func (c *Client) get(verb string, words [][]byte) string {
	for _, word := range words {
		if len(word) > maxKey {
			return badFormat
		}
	}
	for _, word := range words {
		c.getWord(word, verb == "gets")
	}
	return "END"
}

// getWord returns what one word of a get names.
func (c *Client) getWord(word []byte, withCas bool) {
	stats, separator := c.server.stats, c.server.store.Options().separator
	t := c.aim(word, "")
	if t.mapping != nil && len(t.key) == 0 {
		c.item(word, 0, []byte(t.mapping.schema+"/"+t.mapping.table), 0, withCas)
		return
	}
	hits := int64(0)
	if t.mapping != nil {
		c.server.store.Read(t.mapping, func(h *handle, table *Table) {
			if bounds := readRange(t.key); bounds != nil {
				for _, r := range table.scan(h, bounds, separator) {
					if !table.expired(r) {
						hits = 1
						c.item(r.key, r.flags, r.value, r.cas, withCas)
					}
				}
			} else if r := table.live(table.find(h, t.key, separator), stats); r != nil {
				hits = 1
				c.item(word, r.flags, r.value, r.cas, withCas)
			}
		})
	}
	stats.Add("cmd_get", 1)
	stats.Add("get_hits", hits)
	stats.Add("get_misses", 1-hits)
	stats.Prefix(word, prefixCounts{gets: 1, hits: hits})
}

// storage executes a storage command.
func (c *Client) storage(verb string, words [][]byte) string {
	word := bytes.Clone(words[0])
	command := &storage{verb: verb, key: word}
	length, lengthOK := lengthNumber(words[3])
	flagsOK, exptimeOK, casOK := false, false, true
	command.flags, flagsOK = flagNumber(words[1])
	command.exptime, exptimeOK = expiryNumber(words[2])
	if verb == "cas" {
		command.cas, casOK = unsigned64(words[4])
	}
	c.saysNoreply(words)
	if len(word) > maxKey || !flagsOK || !exptimeOK || !lengthOK || !casOK {
		c.skipBlock(words)
		return badFormat
	}
	if length > itemMax {
		command.large = true
		c.skip(length + 2)
	} else {
		block := c.data(length + 2)
		if block[length] != '\r' || block[length+1] != '\n' {
			return "CLIENT_ERROR bad data chunk"
		}
		command.value = block[:length]
	}
	t := target{refused: tooLarge.text}
	if verb == "set" || !command.large { // others of too large values bind nothing (KV-ORDER-003)
		t = c.aim(word, "NOT_STORED")
	}
	if t.refused != "" && command.large {
		c.server.stats.Add("store_too_large", 1)
		return tooLarge.text
	} else if t.refused != "" {
		return t.refused
	}
	command.key = t.key
	if verb != "cas" {
		c.server.stats.Add("cmd_set", 1)
	}
	c.server.stats.Prefix(word, prefixCounts{sets: 1})
	return c.server.store.Store(t.mapping, command, c.server.stats)
}

// arithmetic executes incr and decr.
func (c *Client) arithmetic(verb string, words [][]byte) string {
	c.saysNoreply(words)
	delta, ok := unsigned64(words[1])
	if len(words[0]) > maxKey {
		return badFormat
	} else if !ok {
		return "CLIENT_ERROR invalid numeric delta argument"
	}
	t := c.aim(words[0], "NOT_FOUND")
	if t.refused != "" {
		return t.refused
	}
	return c.server.store.Count(t.mapping, verb, t.key, delta, c.server.stats)
}

// delete executes delete.
func (c *Client) delete(_ string, words [][]byte) string {
	rest := words[1:]
	if c.saysNoreply(rest) {
		rest = rest[:len(rest)-1]
	}
	if len(rest) > 1 || len(rest) == 1 && string(rest[0]) != "0" {
		return badFormat + ".  Usage: delete <key> [noreply]"
	} else if len(words[0]) > maxKey {
		return badFormat
	}
	c.server.stats.Prefix(words[0], prefixCounts{deletes: 1})
	t := c.aim(words[0], "NOT_FOUND")
	if t.refused != "" {
		return t.refused
	}
	return c.server.store.Delete(t.mapping, t.key, c.server.stats)
}

// flushAll executes flush_all.
func (c *Client) flushAll(_ string, words [][]byte) string {
	if silent := c.saysNoreply(words); len(words) == 2 || len(words) == 1 && !silent {
		if delay, ok := signed64(words[0]); !ok {
			return "CLIENT_ERROR invalid exptime argument"
		} else if delay > 0 {
			return "CLIENT_ERROR delayed flush_all is not supported: send flush_all or flush_all 0"
		}
	}
	c.server.stats.Add("cmd_flush", 1)
	return c.server.store.Flush(c.current())
}

// bindCommand executes bind.
func (c *Client) bindCommand(_ string, words [][]byte) string {
	if len(words[0]) > maxKey {
		return badFormat
	}
	if m := c.server.store.Find(string(words[0])); m != nil {
		c.bind(m)
		return "SUCCEED"
	}
	return "NOT_FOUND"
}

// verbosity executes verbosity, whose level only stats settings shows.
func (c *Client) verbosity(_ string, words [][]byte) string {
	c.saysNoreply(words)
	if level, ok := unsigned64(words[0]); ok {
		c.server.stats.verbosity.Store(level)
		return "OK"
	}
	return badFormat
}

// memlimit executes cache_memlimit, which has no effect.
func (c *Client) memlimit(_ string, words [][]byte) string {
	c.saysNoreply(words)
	if megabytes, ok := unsigned64(words[0]); !ok {
		return "ERROR"
	} else if uint32(megabytes) < 8 {
		return "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m"
	}
	return "OK"
}
