// Tables of the class "sortable": a click on a header sorts by its column, a second one the other way round.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("th").forEach((header, column) => {
      header.style.cursor = "pointer";
      header.tabIndex = 0;
      const sort = () => {
        const sign = header.ariaSort === "ascending" ? -1 : 1;
        table.querySelectorAll("th").forEach((other) => { other.ariaSort = null; });
        header.ariaSort = sign === 1 ? "ascending" : "descending";
        const text = (row) => row.cells[column].dataset.order ?? row.cells[column].textContent;
        const compare = (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
        const number = (row) => (text(row) === "-" ? Infinity : Number(text(row)));
        const rows = [...table.tBodies[0].rows];
        const numeric = rows.every((row) => !Number.isNaN(number(row)));
        rows.sort((a, b) => sign * (numeric ? number(a) - number(b) || 0 : compare(a, b)));
        table.tBodies[0].append(...rows);
      };
      header.addEventListener("click", sort);
      header.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  }
});
