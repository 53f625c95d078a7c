// Sorts the tables of a page by a click on a column's title; a third click restores the order.
"use strict";
(() => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0], heads = [...table.querySelectorAll("thead th")], order = [...body.rows];
    const value = (row, column) => {
      const cell = row.cells[column], text = cell.dataset.value || cell.textContent.replaceAll(",", "");
      return heads[column].classList.contains("n") ? parseFloat(text) || 0 : text;
    };
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const is = head.getAttribute("aria-sort"), numeric = head.classList.contains("n");
        const turn = [numeric ? "descending" : "ascending", numeric ? "ascending" : "descending", null];
        const next = turn[(turn.indexOf(is) + 1) % 3];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (next) head.setAttribute("aria-sort", next);
        const sign = next === "descending" ? -1 : 1;
        const rows = next ? [...order].sort((a, b) => {
          const [one, two] = [value(a, column), value(b, column)];
          return sign * (one < two ? -1 : one > two ? 1 : 0);
        }) : order;
        body.append(...rows);
      });
    });
  }
})();
