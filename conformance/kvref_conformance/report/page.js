// Shows the cases whose verdict is ticked and whose text holds every word of the search.
const form = document.getElementById("filter");
const cases = [...document.querySelectorAll(".case")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
function filter() {
  const data = new FormData(form);
  const verdicts = new Set(data.getAll("verdict"));
  const words = data.get("text").toLowerCase().split(/\s+/);
  let count = 0;
  for (const { node, text } of cases) {
    node.hidden = !verdicts.has(node.dataset.verdict) || !words.every((word) => text.includes(word));
    count += !node.hidden;
  }
  for (const section of document.querySelectorAll("section")) section.hidden = !section.querySelector(".case:not([hidden])");
  document.getElementById("count").textContent = `${count} of ${cases.length} cases`;
}
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
filter();
