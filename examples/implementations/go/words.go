package main

import (
	"bytes"
	"math"
)

// maxKey is the number of bytes that a key word may have.
const maxKey = 250

// splitWords cuts a line into its words; only spaces separate them.
func splitWords(line []byte) [][]byte {
	var words [][]byte
	for _, word := range bytes.Split(line, []byte{' '}) {
		if len(word) > 0 {
			words = append(words, word)
		}
	}
	return words
}

// isWhite tells whether an octet is white space inside a word.
func isWhite(b byte) bool { return b == '\t' || b >= 0x0B && b <= 0x0D }

// number is a decimal number with its sign apart.
type number struct {
	negative bool
	size     uint64
}

// parseNumber reads a word by the rule `number` of the grammar. It reports false for a word that is no number or one
// of more than 64 bits.
func parseNumber(word []byte) (number, bool) {
	i := 0
	for i < len(word) && isWhite(word[i]) {
		i++
	}
	var n number
	if i < len(word) && (word[i] == '+' || word[i] == '-') {
		n.negative = word[i] == '-'
		i++
	}
	start := i
	for ; i < len(word) && word[i] >= '0' && word[i] <= '9'; i++ {
		digit := uint64(word[i] - '0')
		if n.size > (math.MaxUint64-digit)/10 {
			return n, false
		}
		n.size = n.size*10 + digit
	}
	if i == start {
		return number{}, len(word) > 0 && isWhite(word[0])
	}
	return n, i == len(word) || isWhite(word[i])
}

// unsigned64 reads a number from 0 to 2^64-1; one below -2^63 counts modulo 2^64.
func unsigned64(word []byte) (uint64, bool) {
	n, ok := parseNumber(word)
	if !ok || n.negative && n.size != 0 && n.size <= 1<<63 {
		return 0, false
	}
	if n.negative {
		return -n.size, true
	}
	return n.size, true
}

// signed64 reads a number from -2^63 to 2^63-1.
func signed64(word []byte) (int64, bool) {
	n, ok := parseNumber(word)
	switch {
	case !ok:
		return 0, false
	case n.negative && n.size <= 1<<63:
		return -int64(n.size), true
	case !n.negative && n.size < 1<<63:
		return int64(n.size), true
	}
	return 0, false
}

// flagNumber reads the flags of a storage command.
func flagNumber(word []byte) (uint32, bool) {
	n, ok := parseNumber(word)
	if !ok {
		return 0, false
	}
	if n.negative && n.size != 0 {
		v := -n.size
		return uint32(v), n.size > 1<<63 && v <= 1<<32
	}
	return uint32(n.size), n.size <= math.MaxUint32
}

// lengthNumber reads the length of a data block.
func lengthNumber(word []byte) (int, bool) {
	n, ok := parseNumber(word)
	if !ok || n.negative && n.size != 0 || n.size > 2147483645 {
		return 0, false
	}
	return int(n.size), true
}

// expiryNumber reads an exptime, of which the low 32 bits count as a signed number.
func expiryNumber(word []byte) (int32, bool) {
	v, ok := signed64(word)
	return int32(v), ok
}

// expiryTime is the UNIX second from which an item with this exptime is missing, 0 for never. A negative exptime is the
// first second of 1970.
func expiryTime(exptime int32, now int64) int64 {
	switch {
	case exptime < 0:
		return 1
	case exptime == 0:
		return 0
	case exptime <= 2592000:
		return now + int64(exptime)
	}
	return int64(exptime)
}

// keyWord is a key word after its mapping is split off.
type keyWord struct {
	mapped    bool   // the word begins with @@ and names a mapping
	name      string // the name of the mapping
	delimiter bool   // the delimiter follows the name
	key       []byte
}

// readKeyWord splits a word at the first delimiter after the name of a mapping.
func readKeyWord(word []byte, delimiter string) keyWord {
	if len(word) < 3 || word[0] != '@' || word[1] != '@' {
		return keyWord{key: word}
	}
	name, key, found := bytes.Cut(word[2:], []byte(delimiter))
	return keyWord{mapped: true, name: string(name), delimiter: found, key: key}
}

// bound is one end of a range of keys.
type bound struct {
	operator string // an SQL operator, empty if the range has no such end
	key      []byte
}

// readRange reads a word as a range of keys.
func readRange(word []byte) (from, to bound, ok bool) {
	if len(word) < 2 || word[0] != '@' || word[1] != '>' && word[1] != '<' {
		return
	}
	other := "@<"
	if word[1] == '<' {
		other = "@>"
	}
	rest := word[2:]
	second := []byte(nil)
	if i := bytes.Index(rest, []byte(other)); i >= 0 {
		rest, second = rest[:i], rest[i+2:]
	}
	read := func(operator string, text []byte) bound {
		if len(text) > 0 && text[0] == '=' {
			return bound{operator + "=", text[1:]}
		}
		return bound{operator, text}
	}
	first := read(string(word[1]), rest)
	var last bound
	if second != nil {
		last = read(other[1:], second)
	}
	if word[1] == '<' {
		first, last = last, first
	}
	return first, last, true
}
