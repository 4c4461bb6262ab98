"use strict";
// Filters the page by level and family. Everything can be read without this.
const filters = document.getElementById("filters");

function show() {
  const level = filters.elements.level.value;
  const family = filters.elements.family.value;
  for (const each of document.querySelectorAll("[data-level]")) {
    each.hidden = (level !== "" && each.dataset.level !== level)
      || (family !== "" && each.dataset.family !== family);
  }
  for (const each of document.querySelectorAll(".holder")) {
    each.hidden = each.querySelector("[data-level]:not([hidden])") === null;
  }
}

filters.hidden = false;
filters.addEventListener("change", show);
show();
