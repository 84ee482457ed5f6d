package main

import (
	"strings"
	"unicode"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// charset is the character set of a collation, the part of its name before the first underscore.
func charset(collation string) string {
	if set, _, found := strings.Cut(collation, "_"); found {
		return set
	}
	return "utf8mb4"
}

// collation returns the comparison of a collation by its name, in the manner of MySQL's.
func collation(name string) func(a, b string) int {
	pads := !strings.Contains(name, "0900") && name != "binary"
	options := []collate.Option{collate.Loose}
	if strings.HasSuffix(name, "_cs") {
		options = nil
	} else if strings.Contains(name, "_as_") {
		options = []collate.Option{collate.IgnoreCase}
	}
	unicodeOrder, buffer := collate.New(language.Und, options...), collate.Buffer{}
	weigh := func(s string) string {
		buffer.Reset()
		return string(unicodeOrder.KeyFromString(&buffer, s))
	}
	switch {
	case name == "binary" || strings.HasSuffix(name, "_bin"):
		weigh = func(s string) string { return s }
	case name == "latin1_general_ci":
		weigh = strings.ToUpper
	case strings.HasSuffix(name, "_general_ci"), strings.HasPrefix(name, "latin1_") && options != nil:
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
