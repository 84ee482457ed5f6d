"use strict";

// Weights of the search; Sphinx copies this file in front of its own search (html_search_scorer). An entry of an index
// directive that is the whole query has 100 points. Pages of records have less than pages that explain.
var Scorer = {
  score: ([docname, , , , score, , kind]) =>
    kind !== "index" && /^reference\/(differences|deviations)\/|^explanation\/notebooks\/|\/contradictions$/.test(docname)
      ? score / 4
      : kind === "text" && /^reference\/specification\//.test(docname) ? score / 2 : score,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
