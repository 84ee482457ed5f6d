package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// charset is the character set that the name of a collation implies.
func charset(collation string) string {
	for _, set := range []string{"latin1", "ascii", "utf8mb4", "utf8mb3", "utf8"} {
		if strings.HasPrefix(collation, set+"_") {
			return set
		}
	}
	return "utf8mb4"
}

// collation returns the comparison of a collation by its name, in the manner of MySQL's.
func collation(name string) func(a, b string) int {
	pads := !strings.Contains(name, "0900") && name != "binary"
	accents, letterCase := strings.Contains(name, "_as_"), strings.HasSuffix(name, "_cs")
	weigh := func(s string) string { return levels(s, accents || letterCase, letterCase) }
	switch {
	case name == "binary" || strings.HasSuffix(name, "_bin"):
		weigh = func(s string) string { return s }
	case name == "latin1_general_ci":
		weigh = strings.ToUpper
	case strings.HasSuffix(name, "_general_ci"), strings.HasPrefix(name, "latin1_") && !letterCase:
		weigh = func(s string) string { return general(s, strings.Contains(name, "swedish")) }
	}
	return func(a, b string) int {
		if pads {
			a, b = strings.TrimRight(a, " "), strings.TrimRight(b, " ")
		}
		return strings.Compare(weigh(a), weigh(b))
	}
}

// general maps each character to one capital letter without accent; the Swedish letters keep their accents.
func general(s string, swedish bool) string {
	return strings.Map(func(r rune) rune {
		u := unicode.ToUpper(r)
		if r == 'ß' {
			return 'S'
		} else if swedish && u == 'Ü' {
			return 'Y'
		} else if swedish && strings.ContainsRune("ÅÄÖÆØ", u) {
			return u
		}
		return []rune(norm.NFD.String(string(u)))[0]
	}, s)
}

// expansions are characters that count as two.
var expansions = strings.NewReplacer("ß", "ss", "ẞ", "SS", "æ", "ae", "Æ", "AE", "œ", "oe", "Œ", "OE")

// levels makes a sort key in the manner of the Unicode collation: marks before digits before letters, then accents, then
// case, if these count.
func levels(s string, accents, letterCase bool) string {
	var first, second, third strings.Builder
	for _, r := range norm.NFKD.String(expansions.Replace(s)) {
		class := byte(1)
		switch {
		case unicode.Is(unicode.Mn, r):
			second.WriteRune(r)
			continue
		case unicode.IsDigit(r):
			class = 2
		case unicode.IsLetter(r):
			class = 3
		}
		first.WriteByte(class)
		first.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
		second.WriteByte(1)
		third.WriteByte(1)
		if unicode.IsUpper(r) {
			third.WriteByte(2)
		}
	}
	key := first.String()
	if accents {
		key += "\x00" + second.String()
	}
	if letterCase {
		key += "\x00" + third.String()
	}
	return key
}
