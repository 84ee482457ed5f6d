package main

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Row is one row of a mapped table.
type Row struct {
	key       []byte
	parts     []driver.Value // the value columns
	value     []byte         // the parts joined
	flags     uint32
	cas       uint64
	expiry    int64
	condition string // finds the row again, with argument
	argument  driver.Value
}

// expired tells whether the row is missing because of its expiry.
func (t *Table) expired(r *Row) bool {
	return t.expiry != nil && r.expiry > 0 && r.expiry <= time.Now().Unix()
}

// sql is the column in a statement on its table, NULL if the mapping has none.
func (c *Column) sql() string {
	if c == nil {
		return "NULL"
	}
	return "t." + quote(c.Name)
}

// selection is the beginning of a SELECT of all mapped columns.
func (t *Table) selection() string {
	columns := []string{t.key.sql(), t.flags.sql(), t.cas.sql(), t.expiry.sql()}
	for i := range t.values {
		columns = append(columns, t.values[i].sql())
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + t.name + " AS t "
}

// readRow makes a Row of what a selection returned.
func (t *Table) readRow(cells []driver.Value, separator string) *Row {
	r := &Row{key: t.key.decode(cells[0]), flags: uint32(bitsOf(cells[1])), cas: bitsOf(cells[2]), parts: cells[4:]}
	r.expiry = int64(bitsOf(cells[3]))
	if t.key.base == "CHAR" {
		r.key = bytes.TrimRight(r.key, " ")
	}
	for i := range t.values {
		if i > 0 {
			r.value = append(r.value, separator...)
		}
		r.value = append(r.value, t.values[i].decode(r.parts[i])...)
	}
	return r
}

// find returns the row of a key, expired or not, or nil.
func (t *Table) find(h *handle, key []byte, separator string) *Row {
	argument, wrong := t.key.encodeKey(key)
	if wrong != nil {
		return nil
	}
	column := t.key.sql()
	try := func(condition string, argument driver.Value) *Row {
		rows := h.query(t.selection()+"WHERE "+condition, argument)
		if len(rows) == 0 {
			return nil
		}
		r := t.readRow(rows[0], separator)
		r.condition, r.argument = condition, argument
		return r
	}
	r := try(column+" = ?", argument)
	if r == nil && t.key.base == "CHAR" {
		collate := "BINARY"
		if t.key.collation != "" {
			collate = quote(t.key.collation)
		}
		r = try("rtrim("+column+", ' ') = ? COLLATE "+collate, argument)
	} else if r == nil && t.key.kind == kindBytes && utf8.Valid(key) {
		r = try(column+" = ?", string(key)) // SQL can have inserted it as text
	}
	return r
}

// scan returns the rows whose keys are within bounds, in ascending order.
func (t *Table) scan(h *handle, bounds []bound, separator string) (rows []*Row) {
	order := t.key.sql()
	if t.key.unsigned {
		order = "length(CAST(" + order + " AS TEXT)), " + order // numbers from 2^63 are bytes, which compare as text
	}
	conditions := t.key.sql() + " IS NOT NULL"
	var arguments []driver.Value
	for _, b := range bounds {
		argument, wrong := t.key.encode(b.key, "bound")
		n, ok := new(big.Int).SetString(string(b.key), 10)
		if wrong != nil && ok && t.key.kind == kindInteger && n.Sign() < 0 == (b.operator[0] == '>') {
			continue // the bound is beyond the end of all numbers
		} else if wrong != nil {
			return nil
		}
		if t.key.unsigned {
			conditions += " AND (" + order + ") " + b.operator + " (?, ?)"
			arguments = append(arguments, int64(len(t.key.decode(argument))), argument)
		} else {
			conditions += " AND " + order + " " + b.operator + " ?"
			arguments = append(arguments, argument)
		}
	}
	for _, cells := range h.query(t.selection()+"WHERE "+conditions+" ORDER BY "+order, arguments...) {
		rows = append(rows, t.readRow(cells, separator))
	}
	return rows
}

// split cuts a value into what the value columns store; columns without a part are NULL.
func (t *Table) split(value []byte, separator string) ([]driver.Value, *refusal) {
	parts := [][]byte{value}
	if len(t.values) > 1 {
		parts = bytes.Split(value, []byte(separator))
	}
	if len(parts) > len(t.values) {
		return nil, &refusal{text: fmt.Sprintf("CLIENT_ERROR %d parts for the %d value columns of %s", len(parts), len(t.values),
			t.mapping.name), unfit: true}
	}
	stored := make([]driver.Value, len(t.values))
	for i, part := range parts {
		if len(part) == 0 && len(t.values) > 1 && t.values[i].kind == kindInteger {
			continue
		}
		var wrong *refusal
		if stored[i], wrong = t.values[i].encodeValue(part); wrong != nil {
			return nil, wrong
		}
	}
	return stored, nil
}

// change is a set of columns with their new contents.
type change struct {
	names  []string
	values []driver.Value
}

// put adds a column to the change.
func (c *change) put(column *Column, value driver.Value) {
	c.names, c.values = append(c.names, quote(column.Name)), append(c.values, value)
}

// number adds a number to the change, unless the mapping has no column for it.
func (c *change) number(column *Column, v uint64, isFlags bool) {
	if column != nil {
		c.put(column, column.encodeNumber(v, isFlags))
	}
}

// changed makes sure that a statement has changed a row.
func changed(n int64) {
	if n == 0 {
		fail("SERVER_ERROR the table has ignored the write")
	}
}

// update writes a change into a row that was found.
func (t *Table) update(h *handle, r *Row, c change) {
	changed(h.exec("UPDATE "+t.name+" AS t SET "+strings.Join(c.names, " = ?, ")+" = ? WHERE "+r.condition,
		append(c.values, r.argument)...))
}

// insert writes a new row.
func (t *Table) insert(h *handle, key driver.Value, c change) {
	c.put(&t.key, key)
	changed(h.exec("INSERT INTO "+t.name+" ("+strings.Join(c.names, ", ")+") VALUES (?"+
		strings.Repeat(", ?", len(c.names)-1)+")", c.values...))
}

// remove deletes a row that was found.
func (t *Table) remove(h *handle, r *Row) {
	changed(h.exec("DELETE FROM "+t.name+" AS t WHERE "+r.condition, r.argument))
}

// live returns a row that find returned, nil if it has expired, which it counts.
func (t *Table) live(r *Row, stats *Stats) *Row {
	if r != nil && t.expired(r) {
		stats.Add("get_expired", 1)
		return nil
	}
	return r
}

// storage is a storage command that is ready for its table.
type storage struct {
	verb    string
	key     []byte
	flags   uint32
	exptime int32
	cas     uint64
	value   []byte
	large   bool // the value of a set is larger than an item can be, and absent
}

// verdict is the reply of a command that finds this row and stores nothing, or empty.
func (c *storage) verdict(r *Row) string {
	switch {
	case c.verb == "add" && r != nil, c.verb != "add" && c.verb != "set" && c.verb != "cas" && r == nil:
		return "NOT_STORED"
	case c.verb == "cas" && r == nil:
		return "NOT_FOUND"
	case c.verb == "cas" && r.cas != c.cas:
		return "EXISTS"
	}
	return ""
}

// Store executes a storage command and returns its reply; a refused set removes the row of its key.
func (s *Store) Store(m *Mapping, c *storage, stats *Stats) (reply string) {
	separator := s.Options().separator
	s.Write(m, func(h *handle, t *Table) {
		key, wrong := t.key.encodeKey(c.key)
		if wrong != nil && !c.large {
			check(wrong)
		}
		next, extends := change{}, c.verb == "append" || c.verb == "prepend"
		if !extends && !c.large { // refused before the value and the condition (KV-FLAG-024)
			next.number(t.flags, uint64(c.flags), true)
			next.number(t.expiry, uint64(expiryTime(c.exptime, time.Now().Unix())), false)
		}
		row := t.find(h, c.key, separator)
		alive := row
		if c.verb != "set" {
			alive = t.live(row, stats)
		}
		if reply = c.verdict(alive); reply != "" {
			return
		}
		value := c.value
		if c.verb == "append" {
			value = append(append([]byte{}, row.value...), value...)
		} else if extends {
			value = append(append([]byte{}, value...), row.value...)
		}
		var parts []driver.Value
		if wrong = &tooLarge; !c.large && len(value) <= itemMax {
			parts, wrong = t.split(value, separator)
		}
		if wrong != nil {
			if wrong.large {
				stats.Add("store_too_large", 1)
			}
			if c.verb == "set" && wrong.unfit && row != nil {
				t.remove(h, row)
			}
			reply = wrong.text
			return
		}
		for i := range t.values {
			next.put(&t.values[i], parts[i])
		}
		next.number(t.cas, s.NextCas(), false)
		reply = "STORED"
		if vanishes := c.exptime < 0 && t.expiry == nil && !extends; vanishes && row != nil {
			t.remove(h, row)
		} else if row != nil {
			t.update(h, row, next)
		} else if !vanishes {
			t.insert(h, key, next)
		}
	})
	if reply == "STORED" {
		stats.Add("total_items", 1)
	}
	if name := map[string]string{"STORED": "cas_hits", "EXISTS": "cas_badval", "NOT_FOUND": "cas_misses"}[reply]; c.verb == "cas" {
		stats.Add(name, 1)
	}
	return reply
}

// Delete removes the row of a key.
func (s *Store) Delete(m *Mapping, key []byte, stats *Stats) string {
	reply, counter := "NOT_FOUND", "delete_misses"
	s.Write(m, func(h *handle, t *Table) {
		if row := t.live(t.find(h, key, ""), stats); row != nil {
			t.remove(h, row)
			reply, counter = "DELETED", "delete_hits"
		}
	})
	stats.Add(counter, 1)
	return reply
}

// Count adds to the number of a key, or subtracts from it down to 0.
func (s *Store) Count(m *Mapping, verb string, key []byte, delta uint64, stats *Stats) string {
	reply, counter := "NOT_FOUND", verb+"_misses"
	separator := s.Options().separator
	s.Write(m, func(h *handle, t *Table) {
		row := t.live(t.find(h, key, separator), stats)
		if row == nil {
			return
		}
		counter = verb + "_hits"
		sum, err := strconv.ParseUint(strings.Trim(string(row.value), " "), 10, 64)
		if err != nil || len(t.values) > 1 {
			fail("CLIENT_ERROR cannot increment or decrement non-numeric value")
		}
		if verb == "incr" {
			sum += delta
		} else {
			sum -= min(sum, delta)
		}
		reply = strconv.FormatUint(sum, 10)
		column := &t.values[0]
		value, wrong := column.encodeValue([]byte(reply))
		if wrong != nil && column.kind == kindInteger {
			check(wrong)
		} else if wrong != nil {
			fail("SERVER_ERROR %s is too wide for column %s (%d)", reply, column.Name, column.width)
		}
		var next change
		next.put(column, value)
		next.number(t.cas, s.NextCas(), false)
		t.update(h, row, next)
	})
	stats.Add(counter, 1)
	return reply
}

// Flush deletes all rows of a table, unless a foreign key forbids it.
func (s *Store) Flush(m *Mapping) string {
	s.Write(m, func(h *handle, t *Table) { h.exec("DELETE FROM " + t.name) })
	return "OK"
}
