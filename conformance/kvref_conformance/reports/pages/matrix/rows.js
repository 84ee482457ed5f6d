// Opens a line: every case of the requirement, and what each endpoint received and replied. Endpoints with equal replies
// are one group; from the step at which one differs from the first, its lines are marked.
const data = JSON.parse(document.getElementById("data").textContent);
const lines = [...document.querySelectorAll("tbody[data-item]")];

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function conversation(steps, parting) {
  const table = element("table", { className: "conversation" });
  steps.forEach(([on, sent, got, note], at) => {
    const name = parting !== undefined && at >= parting ? "parts" : "";
    table.append(
      element("tr", { className: name }, element("td", {}, at + 1), element("td", {}, on), element("td", {}, element("code", {}, sent))),
      element("tr", { className: `got ${name}` }, element("td"), element("td", {}, "←"),
        element("td", {}, element("code", {}, got), note ? ` (${note})` : "")),
    );
  });
  return table;
}

function side(group) {
  const made = element("div", { className: "side" });
  for (const { endpoints, verdict, reason, text } of group) {
    for (const name of endpoints) {
      made.append(element("p", {}, element("b", {}, name), " ", element("span", { className: verdict.replace(" ", "-") }, verdict),
        " ", element("span", { className: "about" }, reason && verdict !== "fails" ? reason : data.endpoints[name])));
    }
    if (text) made.append(element("pre", {}, text));
  }
  const { conversation: number, endpoints, parts } = group[0];
  if (number === undefined) return made;
  if (group.length > 1 || endpoints.length > 1) {
    made.append(element("p", { className: "about" }, `The same on each but for keys and cas numbers; shown: ${endpoints[0]}.`));
  }
  made.append(conversation(data.conversations[number], parts));
  return made;
}

function caseOf(name) {
  // What has no conversation is grouped by its verdict.
  const groups = new Map();
  for (const outcome of data.cases[name]) {
    const key = outcome.conversation ?? `verdict ${outcome.verdict}`;
    groups.set(key, [...(groups.get(key) ?? []), outcome]);
  }
  const sides = [...groups.values()].map(side);
  return element("div", { className: "case" }, element("h3", {}, name), element("div", { className: "sides" }, ...sides));
}

function toggle(line, open = !line.querySelector(".detail")) {
  line.querySelector(".detail")?.remove();
  line.querySelector("button").setAttribute("aria-expanded", open);
  if (!open) return;
  const cell = element("td", { colSpan: Object.keys(data.endpoints).length + 1 }, ...data.requirements[line.id].map(caseOf));
  if (!data.complete) cell.prepend(element("p", {}, "The conversations are too long for this page: the reports have them."));
  line.append(element("tr", { className: "detail" }, cell));
}

function openNamed() {
  const line = lines.find((each) => `#${each.id}` === location.hash);
  if (line) {
    toggle(line, true);
    line.scrollIntoView();
  }
}

function move(by) {
  const shown = lines.filter((line) => !line.hidden);
  const at = shown.findIndex((line) => line.contains(document.activeElement));
  shown[Math.min(shown.length - 1, Math.max(0, at < 0 ? 0 : at + by))]?.querySelector("button").focus();
}

for (const line of lines) line.querySelector("button").addEventListener("click", () => toggle(line));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") lines.forEach((line) => toggle(line, false));
  if (event.target.matches("input[type=search]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const does = { "/": () => form.text.focus(), j: () => move(1), k: () => move(-1) }[event.key];
  if (does) {
    event.preventDefault();
    does();
  }
});
addEventListener("hashchange", openNamed);
openNamed();
