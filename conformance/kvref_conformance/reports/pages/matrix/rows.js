// Opens a line: every case of the requirement, and what each endpoint was told and answered. Endpoints that answered the
// same stand together; from the step at which one parts from the first its lines are marked.
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
    const name = parting !== null && at >= parting ? "parts" : "";
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
  for (const [column, [verdict, reason, , , text]] of group.members) {
    const word = data.verdicts[verdict];
    const [name, about] = data.columns[column];
    made.append(element("p", {}, element("b", {}, name), " ", element("span", { className: word.replace(" ", "-") }, word),
      " ", element("span", { className: "about" }, reason && word !== "fails" ? reason : about)));
    if (text) made.append(element("pre", {}, text));
  }
  if (group.conversation >= 0 && group.members.length > 1) {
    const first = data.columns[group.members[0][0]][0];
    made.append(element("p", { className: "about" }, `The same on each but for keys and cas numbers; shown: ${first}.`));
  }
  if (group.conversation >= 0) made.append(conversation(data.conversations[group.conversation], group.parting));
  return made;
}

function caseOf(name) {
  const groups = new Map();
  data.cases[name].forEach((outcome, column) => {
    if (!outcome) return;
    // What has no conversation stands together by its verdict.
    const key = outcome[2] >= 0 ? outcome[2] : `verdict ${outcome[0]}`;
    if (!groups.has(key)) groups.set(key, { conversation: outcome[2], parting: outcome[3], members: [] });
    groups.get(key).members.push([column, outcome]);
  });
  const sides = [...groups.values()].map(side);
  return element("div", { className: "case" }, element("h3", {}, name), element("div", { className: "sides" }, ...sides));
}

function toggle(line, open = !line.querySelector(".detail")) {
  line.querySelector(".detail")?.remove();
  line.querySelector("button").setAttribute("aria-expanded", open);
  if (!open) return;
  const cell = element("td", { colSpan: data.columns.length + 1 }, ...data.requirements[line.id].map(caseOf));
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
