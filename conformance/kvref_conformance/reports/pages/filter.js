// Shows the items whose words are ticked and whose text holds every word of the search. Boxes of one name are a group:
// an item has its words of that group in data-<name>, separated by bars, and is shown when one of them is ticked.
const form = document.getElementById("filter");
const items = [...document.querySelectorAll("[data-item]")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
const groups = [...new Set([...form.querySelectorAll("input[type=checkbox]")].map((box) => box.name))];
function filter() {
  const data = new FormData(form);
  const words = data.get("text").toLowerCase().split(/\s+/);
  const ticked = Object.fromEntries(groups.map((group) => [group, new Set(data.getAll(group))]));
  let count = 0;
  for (const { node, text } of items) {
    const wanted = groups.every((group) => node.dataset[group].split("|").some((word) => ticked[group].has(word)));
    node.hidden = !wanted || !words.every((word) => text.includes(word));
    count += !node.hidden;
  }
  for (const section of document.querySelectorAll("section[id]")) {
    section.hidden = !!section.querySelector("[data-item]") && !section.querySelector("[data-item]:not([hidden])");
  }
  document.getElementById("count").textContent = `${count} of ${items.length} ${form.dataset.noun}`;
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();
