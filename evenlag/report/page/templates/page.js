"use strict";
const evenlag = JSON.parse(document.getElementById("data").textContent);
const figure = (value) => { // as `number` in figures.py
  if (value === null || value === undefined) return "–";
  const digits = Number.isInteger(value) || Math.abs(value) >= 999.995 ? 0 : 2;
  return value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits, roundingMode: "halfEven"});
};
const quantity = (count, noun) => `${figure(count)} ${noun}${count === 1 ? "" : "s"}`;
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
