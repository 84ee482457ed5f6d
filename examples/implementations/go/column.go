package main

import (
	"database/sql/driver"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// kind is what a column holds.
type kind int

const (
	kindOther kind = iota
	kindInteger
	kindText
	kindBytes
)

// Column is a column of a mapped table.
type Column struct {
	Name      string
	kind      kind
	base      string // the declared type without width and sign
	bits      int    // of an integer
	unsigned  bool
	width     int // largest number of units, or -1
	unit      string
	collation string
	charset   string
	generated bool
}

// refusal is an error whose text is the reply to the client.
type refusal struct {
	text  string
	large bool // the value is too large
	unfit bool // the value does not fit the value columns: a set removes the row
}

func (r *refusal) Error() string { return r.text }

// tooLarge refuses a value that no item can hold.
var tooLarge = refusal{"SERVER_ERROR object too large for cache", true, true}

// refuse makes a refusal with a formatted text.
func refuse(format string, args ...any) *refusal { return &refusal{text: fmt.Sprintf(format, args...)} }

var typePattern = regexp.MustCompile(`^([A-Z]+)\s*(?:\(\s*(\d+)\s*\))?\s*(.*)$`)

var integerBits = map[string]int{"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "INTEGER": 32, "BIGINT": 64}

var octetWidths = map[string]int{"TINYTEXT": 255, "TINYBLOB": 255, "TEXT": 65535, "BLOB": 65535, "MEDIUMTEXT": 16777215,
	"MEDIUMBLOB": 16777215, "LONGTEXT": 4294967295, "LONGBLOB": 4294967295}

// newColumn reads a declared type.
func newColumn(name, declared, collation string) Column {
	c := Column{Name: name, width: -1, unit: "characters", collation: collation, charset: charset(strings.ToLower(collation))}
	parts := typePattern.FindStringSubmatch(strings.ToUpper(strings.TrimSpace(declared)))
	if parts == nil {
		return c
	}
	c.base = parts[1]
	if bits := integerBits[c.base]; bits > 0 {
		c.kind, c.bits, c.unsigned = kindInteger, bits, strings.Contains(parts[3], "UNSIGNED")
		return c
	}
	switch c.base {
	case "CHAR", "VARCHAR":
		c.kind = kindText
	case "VARBINARY":
		c.kind, c.unit = kindBytes, "bytes"
	}
	if octets, ok := octetWidths[c.base]; ok {
		c.width, c.unit, c.kind = octets, "bytes", kindText
		if strings.HasSuffix(c.base, "BLOB") {
			c.kind = kindBytes
		}
	} else if c.kind != kindOther && parts[2] != "" {
		c.width, _ = strconv.Atoi(parts[2])
	} else if c.base == "CHAR" {
		c.width = 1
	}
	return c
}

// limits are the smallest and the largest number of an integer column.
func (c *Column) limits() (low, high *big.Int) {
	one, bits := big.NewInt(1), uint(c.bits)
	if c.unsigned {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, bits), one)
	}
	half := new(big.Int).Lsh(one, bits-1)
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}

// encodeInteger is a number as SQLite stores it, from 2^63 as the bytes of its digits. It is nil if the column cannot
// hold the number.
func (c *Column) encodeInteger(n *big.Int) driver.Value {
	low, high := c.limits()
	if n.Cmp(low) < 0 || n.Cmp(high) > 0 {
		return nil
	} else if n.IsInt64() {
		return n.Int64()
	}
	return n.Append(nil, 10)
}

// encodeText turns bytes into the text that the column holds; it reports the place of the first wrong byte otherwise.
func (c *Column) encodeText(data []byte) (text string, wrong int) {
	if c.charset == "latin1" {
		text, _ = charmap.ISO8859_1.NewDecoder().String(string(data))
		return text, -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || c.charset == "ascii" && r > 0x7F || size == 4 && c.charset != "utf8mb4" {
			return "", i
		}
		i += size
	}
	return string(data), -1
}

// measure is the length of data in the units of the column.
func (c *Column) measure(data []byte) int {
	if c.kind == kindText && c.unit == "characters" && c.charset != "latin1" {
		return utf8.RuneCount(data)
	}
	return len(data)
}

// encode turns a key or a part of a value into what the column stores.
func (c *Column) encode(data []byte, what string) (driver.Value, *refusal) {
	switch c.kind {
	case kindInteger:
		n, ok := new(big.Int).SetString(string(data), 10)
		if ok {
			if v := c.encodeInteger(n); v != nil {
				return v, nil
			}
		}
		low, high := c.limits()
		return nil, refuse("CLIENT_ERROR the %s is no number from %d to %d for column %s", what, low, high, c.Name)
	case kindText:
		text, wrong := c.encodeText(data)
		if wrong >= 0 {
			return nil, refuse("SERVER_ERROR column %s holds %s text, byte %d of the data is none", c.Name, c.charset, wrong)
		}
		return text, nil
	}
	return append([]byte{}, data...), nil
}

// encodeValue turns a part of a value into what the column stores.
func (c *Column) encodeValue(part []byte) (driver.Value, *refusal) {
	v, wrong := c.encode(part, "value")
	if wrong == nil && c.width >= 0 && c.measure(part) > c.width {
		wrong = refuse("SERVER_ERROR object too large for cache: column %s takes %d %s", c.Name, c.width, c.unit)
		wrong.large = true
	}
	if wrong != nil {
		wrong.unfit = true
	}
	return v, wrong
}

// encodeKey turns a key into what the key column stores, or says why it cannot.
func (c *Column) encodeKey(key []byte) (driver.Value, *refusal) {
	v, wrong := c.encode(key, "key")
	if wrong == nil && c.width >= 0 && c.measure(key) > c.width {
		wrong = refuse("CLIENT_ERROR key too long for column %s (%d)", c.Name, c.width)
	}
	return v, wrong
}

// decode turns what the column stores into bytes for the client; NULL is empty.
func (c *Column) decode(v driver.Value) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		return v
	case string:
		if c.charset == "latin1" && c.kind == kindText {
			v, _ = charmap.ISO8859_1.NewEncoder().String(v)
		}
		return []byte(v)
	case float64:
		if c.kind == kindInteger && v >= 0 {
			return strconv.AppendUint(nil, bitsOf(v), 10)
		}
	}
	return []byte(fmt.Sprint(v))
}

// bitsOf reads a stored number as 64 bits; NULL is 0.
func bitsOf(v driver.Value) uint64 {
	switch v := v.(type) {
	case int64:
		return uint64(v)
	case float64:
		if v >= math.MaxUint64 {
			return math.MaxUint64
		} else if v >= 0 {
			return uint64(v)
		}
		return uint64(int64(v))
	case string, []byte:
		n, _ := parseNumber([]byte(cell(v)))
		return n.Uint64() * uint64(n.Sign())
	}
	return 0
}

// encodeNumber turns flags, a cas number or an expiry into what the column stores.
func (c *Column) encodeNumber(v uint64, isFlags bool) driver.Value {
	if isFlags && !c.unsigned && c.bits == 32 {
		return int64(int32(uint32(v)))
	}
	stored := c.encodeInteger(new(big.Int).SetUint64(v))
	if stored == nil {
		fail("CLIENT_ERROR %d is out of the range of column %s", v, c.Name)
	}
	return stored
}
