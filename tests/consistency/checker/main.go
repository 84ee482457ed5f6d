// Checks whether histories of keys are linearizable, by Porcupine (A. Athalye, https://github.com/anishathalye/porcupine).
//
// It reads lines of JSON, one for each operation, and writes one JSON object: what it has checked, and the keys whose
// operations have no order that explains all replies. It knows memcached's commands and nothing of kvref.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// A key that takes longer is reported as undecided.
const limit = 60 * time.Second

// Operation is a command for one key. Returned is null if its outcome is unknown: it takes effect later, or never.
type Operation struct {
	Client     int    `json:"client"`
	Connection int    `json:"connection"` // of the client
	Key        string `json:"key"`
	Kind       string `json:"kind"`
	Argument   string `json:"argument"`
	Expected   string `json:"expected"` // the value that cas was based on
	Reply      string `json:"reply"`
	Called     int64  `json:"called"`
	Returned   *int64 `json:"returned"`
	longest    string // the longest value that was read of a key that is only appended to
}

// State is the item of a key.
type State struct {
	Present bool
	Value   string
}

// Outcome is a reply; Known is false where none came.
type Outcome struct {
	Known bool
	Text  string
}

// after returns the reply of a command that is carried out in a state, and the state behind it.
func after(state State, do Operation) (string, State) {
	stored := State{true, do.Argument}
	switch do.Kind {
	case "get", "gets":
		if state.Present {
			return "VALUE " + state.Value, state
		}
		return "END", state
	case "set":
		return "STORED", stored
	case "add":
		if state.Present {
			return "NOT_STORED", state
		}
		return "STORED", stored
	case "cas":
		if !state.Present {
			return "NOT_FOUND", state
		}
		if state.Value != do.Expected { // each value is written once
			return "EXISTS", state
		}
		return "STORED", stored
	case "delete":
		if state.Present {
			return "DELETED", State{}
		}
		return "NOT_FOUND", state
	case "append":
		if !state.Present {
			return "NOT_STORED", state
		}
		return "STORED", State{true, state.Value + do.Argument}
	case "incr":
		number, failed := strconv.ParseUint(state.Value, 10, 64)
		delta, wrong := strconv.ParseUint(do.Argument, 10, 64)
		if !state.Present {
			return "NOT_FOUND", state
		}
		if failed != nil || wrong != nil {
			return "CLIENT_ERROR", state
		}
		sum := strconv.FormatUint(number+delta, 10)
		return sum, State{true, sum}
	}
	panic("unknown kind of operation: " + do.Kind)
}

func step(state, input, output interface{}) (bool, interface{}) {
	do, outcome := input.(Operation), output.(Outcome)
	reply, next := after(state.(State), do)
	if do.Kind == "append" && !strings.HasPrefix(do.longest, next.Value) && !strings.HasPrefix(next.Value, do.longest) {
		return false, next // no order with this value leads to the longest one
	}
	return !outcome.Known || outcome.Text == reply, next
}

// longest returns the longest value that was read of a key, "" if it is not only appended to.
func longest(operations []porcupine.Operation) string {
	found := ""
	for _, each := range operations {
		switch each.Input.(Operation).Kind {
		case "add", "append":
		case "get", "gets":
			value := strings.TrimPrefix(each.Output.(Outcome).Text, "VALUE ")
			if len(value) > len(found) && value != each.Output.(Outcome).Text {
				found = value
			}
		default:
			return ""
		}
	}
	return found
}

var model = porcupine.Model{
	Init: func() interface{} { return State{} },
	Step: step,
	DescribeOperation: func(input, output interface{}) string {
		do, outcome := input.(Operation), output.(Outcome)
		if !outcome.Known {
			outcome.Text = "?"
		}
		return fmt.Sprintf("%s %s: %s", do.Kind, do.Argument, outcome.Text)
	},
}

func read(path string) (map[string][]porcupine.Operation, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	keys := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var do Operation
		if err := json.Unmarshal(lines.Bytes(), &do); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		returned, outcome := int64(math.MaxInt64), Outcome{}
		if do.Returned != nil {
			returned, outcome = *do.Returned, Outcome{true, do.Reply}
		}
		keys[do.Key] = append(keys[do.Key], porcupine.Operation{
			ClientId: do.Client, Input: do, Call: do.Called, Output: outcome, Return: returned,
		})
	}
	for _, operations := range keys {
		value := longest(operations)
		for number, each := range operations {
			do := each.Input.(Operation)
			do.longest = value
			operations[number].Input = do
		}
	}
	return keys, lines.Err()
}

// Verdict is what was found. Undecided keys took too long.
type Verdict struct {
	Keys       int      `json:"keys"`
	Operations int      `json:"operations"`
	Unknown    int      `json:"unknown"`
	Wrong      []string `json:"wrong"`
	Undecided  []string `json:"undecided"`
	Stale      int      `json:"stale"` // gets, see session
}

func main() {
	words := os.Args[1:]
	sessions := len(words) > 0 && words[0] == "session"
	if sessions {
		words = words[1:]
	}
	if len(words) != 1 {
		fmt.Fprintln(os.Stderr, "usage: checker [session] HISTORY.jsonl")
		os.Exit(2)
	}
	keys, err := read(words[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	verdict := Verdict{Keys: len(keys), Wrong: []string{}, Undecided: []string{}}
	for key, operations := range keys {
		verdict.Operations += len(operations)
		for _, each := range operations {
			if !each.Output.(Outcome).Known {
				verdict.Unknown++
			}
		}
		if sessions {
			others, wrong, stale := session(operations)
			operations = others
			verdict.Stale += stale
			for _, each := range wrong {
				fmt.Fprintf(os.Stderr, "%s: %+v\n", key, each)
			}
			if len(wrong) > 0 {
				verdict.Wrong = append(verdict.Wrong, key)
				continue
			}
		}
		switch result, info := porcupine.CheckOperationsVerbose(model, operations, limit); result {
		case porcupine.Illegal:
			verdict.Wrong = append(verdict.Wrong, key)
			if err := porcupine.VisualizePath(model, info, words[0]+"."+key+".html"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		case porcupine.Unknown:
			verdict.Undecided = append(verdict.Undecided, key)
		}
	}
	sort.Strings(verdict.Wrong)
	sort.Strings(verdict.Undecided)
	if err := json.NewEncoder(os.Stdout).Encode(verdict); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
