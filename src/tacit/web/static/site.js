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

// A part of a page that could not be fetched or sent says so on top, once.
const tell = (words) => {
  let told = document.getElementById("told");
  if (!told) {
    told = document.createElement("p");
    told.id = "told";
    told.className = "flash bad";
    told.setAttribute("role", "alert");
    document.getElementById("content").prepend(told);
  }
  told.textContent = words;
};
document.addEventListener("htmx:responseError", (event) => {
  const status = event.detail.xhr.status;
  if (event.detail.xhr.getResponseHeader("HX-Redirect")) return;
  if (status === 403) tell("Your session has ended, or this page is old. Nothing was changed. Keep what you typed and reload the page.");
  else if (status === 413) tell("That is too much at once. Nothing was changed. Send a shorter text.");
  else tell("This did not work, and nothing was changed. Try again, or reload the page.");
});
document.addEventListener("htmx:sendError", () => tell("The site does not answer. Nothing was changed. Try again in a while."));

// A button with data-copy copies the text of the element that it names.
document.addEventListener("click", (event) => {
  const button = event.target.closest && event.target.closest("[data-copy]");
  if (!button || !navigator.clipboard) return;
  navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent.trim()).then(() => {
    button.textContent = "Copied";
  });
});

// A slider that types one of a few values into a field: <div data-slider="f-epsilon"><input type="range" data-values="...">
for (const part of document.querySelectorAll("[data-slider]")) {
  const field = document.getElementById(part.dataset.slider), slider = part.querySelector("input");
  const values = slider.dataset.values.split(","), nearest = () => {
    const typed = Math.log(Number(field.value) || 1), far = values.map((value) => Math.abs(Math.log(Number(value)) - typed));
    slider.value = String(far.indexOf(Math.min(...far)));
    slider.setAttribute("aria-valuetext", `epsilon ${field.value}`);
  };
  part.hidden = false;
  nearest();
  field.addEventListener("input", nearest);
  slider.addEventListener("input", () => { field.value = values[Number(slider.value)]; slider.setAttribute("aria-valuetext", `epsilon ${field.value}`); });
}
