"use strict";
const evenlag = JSON.parse(document.getElementById("data").textContent);
const figure = (value) => value === null || value === undefined ? "–"
  : value.toLocaleString("en", {maximumFractionDigits: Math.abs(value) < 1000 ? 2 : 0});
const make = (tag, attributes = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
for (const button of document.querySelectorAll("[data-save]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const text = document.getElementById(button.dataset.save).textContent;
    const link = make("a", {download: button.dataset.name, href: URL.createObjectURL(new Blob([text], {type: "application/json"}))});
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
