// gomemcache: text. What should come is in ../../features.toml.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

const module = "github.com/bradfitz/gomemcache"

var client *memcache.Client

var errCannot = errors.New("no such call")

type line struct {
	Feature string `json:"feature"`
	Came    []any  `json:"came"`
	Cannot  string `json:"cannot,omitempty"`
}

// A part of a feature tells what comes and returns the error that ends it.
type part func(key string, tell func(any)) error

type feature struct {
	name  string
	begin part
	// After a wait; the same key.
	end part
}

func set(key, value string, ttl int32) error {
	return client.Set(&memcache.Item{Key: key, Value: []byte(value), Expiration: ttl})
}

// A miss is null, any other error is one.
func value(item *memcache.Item, err error) (any, error) {
	if errors.Is(err, memcache.ErrCacheMiss) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return string(item.Value), nil
}

// A refusal is false, any other error is one.
func done(err error) (any, error) {
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, memcache.ErrCacheMiss), errors.Is(err, memcache.ErrNotStored), errors.Is(err, memcache.ErrCASConflict):
		return false, nil
	}
	return nil, err
}

// Run calls one after the other and tell what each gives, up to the first error.
func each(tell func(any), calls ...func() (any, error)) error {
	for _, call := range calls {
		came, err := call()
		if err != nil {
			return err
		}
		tell(came)
	}
	return nil
}

func gets(key string) func() (any, error) {
	return func() (any, error) { return value(client.Get(key)) }
}

func sets(key, text string, ttl int32) func() (any, error) {
	return func() (any, error) { return done(set(key, text, ttl)) }
}

func stores(call func(*memcache.Item) error, key, text string) func() (any, error) {
	return func() (any, error) { return done(call(&memcache.Item{Key: key, Value: []byte(text)})) }
}

func counts(call func(string, uint64) (uint64, error), key string, by uint64) func() (any, error) {
	return func() (any, error) { return call(key, by) }
}

func get(key string, tell func(any)) error {
	removed := func() (any, error) { return done(client.Delete(key)) }
	return each(tell, sets(key, "one", 0), gets(key), gets(key+"-none"), removed, gets(key))
}

func values(key string, tell func(any)) error {
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for _, wanted := range [][]byte{[]byte("42"), []byte(strings.Repeat("kvref ", 700)), all} {
		if err := set(key, string(wanted), 0); err != nil {
			return err
		}
		item, err := client.Get(key)
		if err != nil {
			return err
		}
		tell(bytes.Equal(item.Value, wanted))
	}
	return nil
}

// Two values are set, and found with others at once.
func found(one, two string, keys []string, tell func(any)) error {
	if err := set(one, "one", 0); err != nil {
		return err
	}
	if err := set(two, "two", 0); err != nil {
		return err
	}
	items, err := client.GetMulti(keys)
	for _, key := range keys {
		if item := items[key]; item != nil {
			tell(string(item.Value))
		} else {
			tell(nil)
		}
	}
	return err
}

func multi(key string, tell func(any)) error {
	return found(key+"1", key+"2", []string{key + "1", key + "2", key + "-none"}, tell)
}

func multiAt(key string, tell func(any)) error {
	return found("@@bbb."+key+"1", "@@aaa."+key+"2", []string{"@@bbc." + key + "1", "@@aaa." + key + "2"}, tell)
}

func store(key string, tell func(any)) error {
	return each(tell, stores(client.Add, key, "one"), stores(client.Add, key, "two"),
		stores(client.Replace, key, "two"), stores(client.Replace, key+"-none", "two"), gets(key))
}

func appended(key string, tell func(any)) error {
	if err := set(key, "two", 0); err != nil {
		return err
	}
	return each(tell, stores(client.Append, key, ">"), stores(client.Prepend, key, "<"), gets(key))
}

func cas(key string, tell func(any)) error {
	if err := set(key, "one", 0); err != nil {
		return err
	}
	item, err := client.Get(key)
	if err != nil {
		return err
	}
	tell(string(item.Value))
	swaps := func(text string) func() (any, error) {
		return func() (any, error) {
			item.Value = []byte(text)
			return done(client.CompareAndSwap(item))
		}
	}
	return each(tell, swaps("two"), swaps("three"), gets(key))
}

func incr(key string, tell func(any)) error {
	if err := set(key, "5", 0); err != nil {
		return err
	}
	return each(tell, counts(client.Increment, key, 3), counts(client.Decrement, key, 2), counts(client.Decrement, key, 10))
}

func cannot(string, func(any)) error { return errCannot }

func shortly(key string, tell func(any)) error {
	if err := set(key, "one", 2); err != nil {
		return err
	}
	return each(tell, gets(key))
}

func touched(key string, tell func(any)) error {
	if err := set(key, "one", 2); err != nil {
		return err
	}
	touches := func(key string) func() (any, error) {
		return func() (any, error) { return done(client.Touch(key, 100)) }
	}
	return each(tell, touches(key), touches(key+"-none"))
}

func gat(key string, tell func(any)) error {
	if err := set(key, "one", 2); err != nil {
		return err
	}
	gats := func(key string) func() (any, error) {
		return func() (any, error) { return value(client.GetAndTouch(key, 100)) }
	}
	return each(tell, gats(key), gats(key+"-none"))
}

func later(key string, tell func(any)) error { return each(tell, gets(key)) }

func at(key string, tell func(any)) error {
	return each(tell, sets("@@bbb."+key, "other", 0), gets("@@bbc."+key), gets("@@aaa."+key))
}

var atOnce = []feature{
	{"get", get, nil}, {"values", values, nil}, {"multi", multi, nil}, {"store", store, nil}, {"append", appended, nil},
	{"cas", cas, nil}, {"incr", incr, nil}, {"initial", cannot, nil},
}
var waiting = []feature{{"expiry", shortly, later}, {"touch", touched, later}, {"gat", gat, later}}

// Last, because it leaves the connection in another container.
var switching = []feature{{"at", at, nil}, {"multi_at", multiAt, nil}, {"bind", cannot, nil}}

func advance(part part, key string, told *line) {
	if told.Cannot != "" {
		return
	}
	if last := len(told.Came); last > 0 && strings.HasPrefix(fmt.Sprint(told.Came[last-1]), "error: ") {
		return
	}
	err := part(key, func(came any) { told.Came = append(told.Came, came) })
	if errors.Is(err, errCannot) {
		told.Cannot = err.Error()
	} else if err != nil {
		told.Came = append(told.Came, "error: "+err.Error())
	}
}

// A call of `kvref conform-client` by its name; the items that gets returned are kept for cas.
func made(name string, given []any, found map[string]*memcache.Item) (any, error) {
	if name == "get_multi" {
		var keys []string
		for _, each := range given[0].([]any) {
			keys = append(keys, each.(string))
		}
		items, err := client.GetMulti(keys)
		values := map[string]string{}
		for key, item := range items {
			values[key] = string(item.Value)
		}
		return values, err
	}
	key := given[0].(string)
	var text string
	var number float64
	if len(given) > 1 {
		text, _ = given[1].(string)
		number, _ = given[1].(float64)
	}
	item := &memcache.Item{Key: key, Value: []byte(text)}
	switch name {
	case "get":
		return value(client.Get(key))
	case "gat":
		return value(client.GetAndTouch(key, int32(number)))
	case "gets":
		item, err := client.Get(key)
		found[key] = item
		shown, err := value(item, err)
		return []any{shown, key}, err
	case "cas":
		item := found[key]
		item.Value = []byte(text)
		return done(client.CompareAndSwap(item))
	case "set":
		return done(client.Set(item))
	case "add":
		return done(client.Add(item))
	case "replace":
		return done(client.Replace(item))
	case "append":
		return done(client.Append(item))
	case "prepend":
		return done(client.Prepend(item))
	case "delete":
		return done(client.Delete(key))
	case "touch":
		return done(client.Touch(key, int32(number)))
	case "incr", "decr":
		count := client.Increment
		if name == "decr" {
			count = client.Decrement
		}
		sum, err := count(key, uint64(number))
		if errors.Is(err, memcache.ErrCacheMiss) {
			return nil, nil
		}
		return sum, err
	}
	return nil, errCannot
}

// Connect, with TLS if there is an authority to trust.
func connect(given []any, timeout time.Duration) map[string]any {
	client = memcache.New(fmt.Sprintf("%s:%.0f", given[0], given[1]))
	client.Timeout = timeout
	options := map[string]any{}
	if len(given) > 2 {
		options = given[2].(map[string]any)
	}
	if options["credentials"] != nil {
		return map[string]any{"cannot": "no option credentials"}
	}
	if options["ca"] != nil {
		pem, err := os.ReadFile(options["ca"].(string))
		if err != nil {
			return map[string]any{"raised": err.Error()}
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: timeout}, Config: &tls.Config{RootCAs: roots}}
		client.DialContext = dialer.DialContext
	}
	return map[string]any{"returned": true}
}

// Make the calls that standard input lists, a JSON array a line, each with a line of its result.
func serve(out *json.Encoder, timeout time.Duration) {
	found := map[string]*memcache.Item{}
	in := json.NewDecoder(os.Stdin)
	for {
		var given []any
		if in.Decode(&given) != nil {
			return
		}
		name := given[0].(string)
		if name == "connect" {
			_ = out.Encode(connect(given[1:], timeout))
			continue
		}
		returned, err := made(name, given[1:], found)
		switch {
		case errors.Is(err, errCannot):
			_ = out.Encode(map[string]any{"cannot": "no call " + name})
		case err != nil:
			_ = out.Encode(map[string]any{"raised": err.Error()})
		default:
			_ = out.Encode(map[string]any{"returned": returned})
		}
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	_ = out.Encode(map[string]string{"client": "gomemcache", "version": version(), "runtime": runtime.Version()})
	if os.Args[1] == "--calls" {
		seconds, _ := strconv.ParseFloat(os.Args[3], 64)
		serve(out, time.Duration(seconds*float64(time.Second)))
		return
	}
	host, port, prefix := os.Args[1], os.Args[2], os.Args[4]
	client = memcache.New(host + ":" + port)
	client.Timeout = 5 * time.Second
	begin := func(features []feature) []*line {
		var lines []*line
		for _, each := range features {
			told := &line{Feature: each.name, Came: []any{}}
			advance(each.begin, prefix+"-"+each.name, told)
			lines = append(lines, told)
		}
		return lines
	}
	tell := func(lines []*line) {
		for _, each := range lines {
			_ = out.Encode(each)
		}
	}
	tell(begin(atOnce))
	begun := begin(waiting)
	time.Sleep(3200 * time.Millisecond)
	for n, each := range waiting {
		advance(each.end, prefix+"-"+each.name, begun[n])
	}
	tell(begun)
	tell(begin(switching))
}
