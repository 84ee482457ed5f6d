package main

import (
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// start stands for what a key was before all writes: there was no item.
var start = porcupine.Operation{Call: -1, Return: -1, Input: Operation{Kind: "delete"}, Output: Outcome{true, "DELETED"}}

// has returns whether a command that has written wrote what a get has replied, as far as the key's type shows that.
func has(write porcupine.Operation, shown string) bool {
	do, outcome := write.Input.(Operation), write.Output.(Outcome)
	value, found := strings.CutPrefix(shown, "VALUE ")
	switch do.Kind {
	case "delete":
		return !found
	case "incr":
		return found && (!outcome.Known || outcome.Text == value)
	case "append":
		return found && strings.HasSuffix(value, do.Argument)
	}
	return found && value == do.Argument
}

// holds returns whether a value shows an increment or an append, after which only more of the same came.
func holds(write porcupine.Operation, shown string) bool {
	do, value := write.Input.(Operation), strings.TrimPrefix(shown, "VALUE ")
	switch do.Kind {
	case "incr":
		number, failed := strconv.ParseUint(value, 10, 64)
		least, _ := strconv.ParseUint(write.Output.(Outcome).Text, 10, 64)
		return failed == nil && number >= least
	case "append":
		return strings.Contains(value+",", do.Argument+",") // each begins with a comma
	}
	return true
}

// wrote returns whether an operation has written, or may have.
func wrote(operation porcupine.Operation) bool {
	do, outcome := operation.Input.(Operation), operation.Output.(Outcome)
	switch do.Kind {
	case "get", "gets":
		return false
	case "incr":
		return outcome.Text != "NOT_FOUND"
	}
	return !outcome.Known || outcome.Text == "STORED" || outcome.Text == "DELETED"
}

// session checks the plain gets of a key whose readers see their own writes: a get shows what some command wrote that was
// sent before the get's reply, and that was not over before the last write of the get's own connection began.
//
// It returns the other operations, the gets that break the rule, and how many gets missed a write that was acknowledged
// before they were sent, which the rule allows if another connection made it.
func session(operations []porcupine.Operation) (others, wrong []porcupine.Operation, stale int) {
	writes := []porcupine.Operation{start}
	for _, each := range operations {
		if wrote(each) {
			writes = append(writes, each)
		}
		if each.Input.(Operation).Kind != "get" {
			others = append(others, each)
		}
	}
	for _, get := range operations {
		if get.Input.(Operation).Kind != "get" {
			continue
		}
		own := lastOf(writes, get)
		shown := get.Output.(Outcome).Text
		found, last := false, int64(-1) // when the last command that may have written it was over
		for _, each := range writes {
			if each.Call < get.Return && each.Return >= own.Call && has(each, shown) {
				found = true
				last = max(last, each.Return)
			}
		}
		if !found || !holds(own, shown) {
			wrong = append(wrong, get)
			continue
		}
		for _, each := range writes {
			if each.Output.(Outcome).Known && last < each.Call && each.Return < get.Call {
				stale++
				break
			}
		}
	}
	return others, wrong, stale
}

// lastOf returns the last acknowledged write of a get's connection, or start.
func lastOf(writes []porcupine.Operation, get porcupine.Operation) porcupine.Operation {
	own, reader := start, get.Input.(Operation)
	for _, each := range writes {
		do := each.Input.(Operation)
		same := do.Client == reader.Client && do.Connection == reader.Connection
		if same && each.Output.(Outcome).Known && each.Return < get.Call && each.Call > own.Call {
			own = each
		}
	}
	return own
}
