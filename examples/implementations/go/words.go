package main

import (
	"bytes"
	"math"
	"math/big"
	"regexp"
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

var (
	numberPattern = regexp.MustCompile(`^[\t\v\f\r]*([+-]?[0-9]+)([\t\v\f\r]|$)`)
	zeroPattern   = regexp.MustCompile(`^[\t\v\f\r]+($|[+-]?($|[^0-9\t\v\f\r+-])|[+-][\t\v\f\r+-])`)
)

// parseNumber reads a word by the rule `number` of the grammar. It reports false for a word that is no number.
func parseNumber(word []byte) (*big.Int, bool) {
	if match := numberPattern.FindSubmatch(word); match != nil {
		return new(big.Int).SetString(string(match[1]), 10)
	}
	return new(big.Int), zeroPattern.Match(word)
}

// unsigned64 reads a number from 0 to 2^64-1; one below -2^63 counts modulo 2^64.
func unsigned64(word []byte) (uint64, bool) {
	n, ok := parseNumber(word)
	if !ok || n.BitLen() > 64 || n.Sign() < 0 && n.IsInt64() {
		return 0, false
	}
	return n.Uint64() * uint64(n.Sign()), true
}

// signed64 reads a number from -2^63 to 2^63-1.
func signed64(word []byte) (int64, bool) {
	n, ok := parseNumber(word)
	return n.Int64(), ok && n.IsInt64()
}

// flagNumber reads the flags of a storage command.
func flagNumber(word []byte) (uint32, bool) {
	v, ok := unsigned64(word)
	return uint32(v), ok && v <= math.MaxUint32
}

// lengthNumber reads the length of a data block.
func lengthNumber(word []byte) (int, bool) {
	v, ok := signed64(word)
	return int(v), ok && v >= 0 && v <= 2147483645
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

// bound is one end of a range of keys.
type bound struct {
	operator string // of SQL
	key      []byte
}

// rangePatterns match words that are ranges, by the operator of their first bound.
var rangePatterns = map[string]*regexp.Regexp{
	">": regexp.MustCompile(`(?s)^@>(=?)(.*?)(?:@(<=?)(.*))?$`),
	"<": regexp.MustCompile(`(?s)^@<(=?)(.*?)(?:@(>=?)(.*))?$`),
}

// readRange reads a word as the bounds of a range of keys, none if it is no range.
func readRange(word []byte) (bounds []bound) {
	for operator, pattern := range rangePatterns {
		if m := pattern.FindSubmatch(word); m != nil {
			bounds = append(bounds, bound{operator + string(m[1]), m[2]})
			if m[3] != nil {
				bounds = append(bounds, bound{string(m[3]), m[4]})
			}
		}
	}
	return bounds
}
