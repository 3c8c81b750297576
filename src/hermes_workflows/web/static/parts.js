// What several scripts do to a page.

export const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

// A command beside which a button puts it into the clipboard; where there is none, it can be selected.
export function addCopies() {
  for (const command of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "small";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy the command ${command.textContent}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    });
    command.after(" ", button);
  }
}

export const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

// `fresh` in the place of the page that is shown; nothing is loaded, and the tab's history stays as it is.
export function show(fresh) {
  const main = document.querySelector("main");
  main.replaceChildren(...fresh.querySelector("main").childNodes);
  document.title = fresh.title;
  for (const old of document.querySelectorAll(".banner")) old.remove();
  main.before(...fresh.querySelectorAll(".banner"));
  document.querySelector("header").replaceWith(fresh.querySelector("header"));
  addCopies();
}
