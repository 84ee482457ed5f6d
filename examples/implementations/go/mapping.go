package main

import (
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
)

// Mapping is a row of containers.
type Mapping struct {
	name, schema, table, key, values, flags, cas, expiry, index string
}

// containers reads rows of the table containers.
func (h *handle) containers(condition string, args ...driver.Value) (all []*Mapping) {
	for _, r := range h.query("SELECT name, db_schema, db_table, key_columns, value_columns, flags, cas_column, "+
		"expire_time_column, unique_idx_name_on_key FROM containers "+condition, args...) {
		all = append(all, &Mapping{cell(r[0]), cell(r[1]), cell(r[2]), cell(r[3]), cell(r[4]), cell(r[5]), cell(r[6]),
			cell(r[7]), cell(r[8])})
	}
	return all
}

// Table is the mapped table of a mapping, with the columns that the mapping names.
type Table struct {
	mapping            *Mapping
	name               string // in SQLite, with quotation marks
	key                Column
	values             []Column
	flags, cas, expiry *Column
}

// quote makes an identifier of SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// reject ends the check of a row of containers.
func reject(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// describe checks a row of containers against the schema.
func (h *handle) describe(m *Mapping) *Table {
	found := h.query("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name COLLATE NOCASE IN (?1, ?2) "+
		"ORDER BY name = ?2 COLLATE NOCASE", m.schema+"."+m.table, m.table)
	if len(found) == 0 {
		reject("there is no table %s.%s", m.schema, m.table)
	}
	name, create := cell(found[0][0]), cell(found[0][1])
	columns := map[string]Column{}
	primary := []string{}
	for _, r := range h.query("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", name) {
		c := newColumn(cell(r[0]), cell(r[1]), columnCollation(create, cell(r[0])))
		c.generated = r[3].(int64) != 0
		columns[c.Name] = c
		if r[2].(int64) > 0 {
			primary = append(primary, c.Name)
		}
	}
	t := &Table{mapping: m, name: quote(name)}
	t.chooseColumns(columns)
	if !strings.EqualFold(m.index, "PRIMARY") {
		h.checkIndex(m, name)
	} else if len(primary) != 1 || primary[0] != m.key {
		reject("%s is not the primary key of %s", m.key, name)
	}
	return t
}

// checkIndex makes sure that the index of a mapping is a unique one on the key column alone.
func (h *handle) checkIndex(m *Mapping, table string) {
	rows := h.query("SELECT name, \"unique\" AND NOT partial FROM pragma_index_list(?)", table)
	for _, wanted := range []string{m.table + "." + m.index, table + "." + m.index, m.index} {
		for _, r := range rows {
			if strings.EqualFold(cell(r[0]), wanted) {
				parts := h.query("SELECT name FROM pragma_index_info(?)", cell(r[0]))
				if r[1].(int64) == 0 || len(parts) != 1 || cell(parts[0][0]) != m.key {
					reject("index %s is not a unique one on %s alone", m.index, m.key)
				}
				return
			}
		}
	}
	reject("there is no index %s", m.index)
}

// chooseColumns finds the columns that the row of containers names.
func (t *Table) chooseColumns(columns map[string]Column) {
	m := t.mapping
	used := map[string]bool{}
	use := func(name string, isNumber bool) Column {
		c, ok := columns[name]
		switch {
		case !ok:
			reject("there is no column %q", name)
		case used[name]:
			reject("column %q has two purposes", name)
		case c.generated:
			reject("column %q is generated", name)
		case c.kind == kindOther, !isNumber && c.base == "MEDIUMINT", isNumber && c.kind != kindInteger:
			reject("the type of column %q is unsuitable", name)
		}
		used[name] = true
		return c
	}
	t.key = use(m.key, false)
	names := strings.FieldsFunc(m.values, func(r rune) bool { return strings.ContainsRune(",;| \n", r) })
	if len(names) < 2 {
		names = []string{m.values}
	}
	for _, name := range names {
		t.values = append(t.values, use(name, false))
	}
	for name, column := range map[*string]**Column{&m.flags: &t.flags, &m.cas: &t.cas, &m.expiry: &t.expiry} {
		if _, exists := columns[*name]; exists && *name != "0" {
			c := use(*name, true)
			*column = &c
		}
	}
	if t.cas != nil && t.cas.bits < 64 {
		reject("the cas column %q has fewer than 64 bits", m.cas)
	}
}

// columnCollation reads the collation of a column from a CREATE TABLE statement.
func columnCollation(create, column string) string {
	pattern := "(?is)[(,]\\s*[\"`\\[]?" + regexp.QuoteMeta(column) + "[\"`\\]]?\\s(?:[^,()]|\\([^()]*\\))*?\\bCOLLATE\\s+[\"'`\\[]?(\\w+)"
	if match := regexp.MustCompile(pattern).FindStringSubmatch(create); match != nil {
		return match[1]
	}
	return ""
}
