// What pages do besides reading; everything works without it.
"use strict";

// A form with data-sure asks before it is sent.
document.addEventListener("submit", (event) => {
  const words = event.target.dataset && event.target.dataset.sure;
  if (words && !window.confirm(words)) event.preventDefault();
});

// Errors on top of a form are where reading goes on.
const summary = document.querySelector(".summary[role=alert]");
if (summary) summary.focus();

// A button with data-copy copies the text of the element that it names.
document.addEventListener("click", (event) => {
  const button = event.target.closest && event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent.trim()).then(() => {
    button.textContent = "Copied";
  });
});
