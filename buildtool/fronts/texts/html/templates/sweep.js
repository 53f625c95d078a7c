// The filters of a sweep's page. The page can be read without them, and fetches nothing.
"use strict";
(() => {
  document.documentElement.classList.add("js-on");
  const find = (selector, inside) => [...inside.querySelectorAll(selector)];

  for (const section of find("section.board", document)) {
    const rows = find("table.candidates tbody tr", section), said = section.querySelector(".said");
    const words = section.querySelector(".words"), best = section.querySelector(".best");
    const limits = find(".limit", section);
    if (!rows.length) continue;
    const names = new Map(rows.map((row) => [row, row.cells[0].textContent.toLowerCase()]));
    const values = new Map(rows.map((row) => [row, row.dataset.values.split(" ").map(Number)]));

    function isShown(row) {
      if (best.checked && !row.classList.contains("on-front")) return false;
      if (!names.get(row).includes(words.value.trim().toLowerCase())) return false;
      return limits.every((limit) => {
        if (limit.value === "") return true;
        const value = values.get(row)[Number(limit.dataset.at)], bound = Number(limit.value);
        return limit.dataset.more === "1" ? value >= bound : value <= bound;
      });
    }
    function filter() {
      let count = 0;
      for (const row of rows) {
        row.hidden = !isShown(row);
        count += row.hidden ? 0 : 1;
      }
      said.textContent = `${count.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} shown`;
    }
    for (const input of [words, best, ...limits]) input.addEventListener("input", filter);
    filter();
  }
})();
