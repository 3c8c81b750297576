// What makes the pages quicker to use; without it everything works the same.
const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

function move(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  if (!items.length) return;
  const at = items.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(Math.max(at + step, 0), items.length - 1);
  items[next].focus();
  items[next].scrollIntoView({ block: "nearest" });
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  "/": () => document.querySelector(".filter select, .filter input")?.focus(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// The buttons of a question get the focus, never the press: Enter is the second thought.
function toAction(number) {
  const button = document.querySelector(`[data-action="${number}"]`);
  if (button) {
    button.focus();
    return;
  }
  const item = document.activeElement?.closest?.("[data-item]");
  if (item) location.assign(`${item.href}#action-${number}`);
}
keys.a = () => toAction(1);
keys.r = () => toAction(2);
const wanted = /^#action-([12])$/.exec(location.hash);
if (wanted) toAction(wanted[1]);

// What does not fit is said while it is typed, by the same rules that hold when it is sent.
const form = document.querySelector("form[data-check]");
if (form) {
  let timer = 0;
  let turn = 0;
  const place = (pointer) => {
    for (let at = pointer; at; at = at.slice(0, at.lastIndexOf("/"))) {
      const found = form.querySelector(`[data-errors="${CSS.escape(at)}"]`);
      if (found) return [found, pointer.slice(at.length)];
    }
    return [form.querySelector('[data-errors=""]'), pointer];
  };
  const show = (errors) => {
    for (const each of form.querySelectorAll("[data-errors]")) each.replaceChildren();
    for (const { field, reason } of errors) {
      const [target, rest] = place(field);
      const line = document.createElement("p");
      line.textContent = rest ? `${rest} ${reason}` : reason;
      target.append(line);
    }
  };
  const touched = new Set();
  const check = async () => {
    const mine = ++turn;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
    if (!answer?.ok || mine !== turn) return;
    const errors = await answer.json();
    // Of fields that nobody has been at yet, nothing is wrong yet.
    show(errors.filter(({ field }) => [...touched].some((name) => name === "_json" || `f${field}`.startsWith(name))));
  };
  form.addEventListener("input", (event) => {
    touched.add(event.target.name);
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  });
}

// After a page that says what is wrong, the first such field is where one goes on.
// Not before all is loaded: going to the fragment of the address takes the focus away.
addEventListener("load", () => document.querySelector("[aria-invalid=true]")?.focus());

// A command beside which a button puts it into the clipboard; where there is none, it can be selected.
function addCopies() {
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
addCopies();

// What has just been done is told once: not again when the page is read anew, nor to whoever keeps its address.
const arrived = new URL(location.href);
if (["done", "recorded"].some((name) => arrived.searchParams.has(name))) {
  arrived.searchParams.delete("done");
  arrived.searchParams.delete("recorded");
  history.replaceState(null, "", arrived);
}

// A page that is kept up to date: the stream says that it has changed, and it is read again.
const main = document.querySelector("main[data-events]");
if (main) {
  let source = null;
  let since = new URL(main.dataset.events, location.href).searchParams.get("since");
  let late = false;
  const summaries = () => [...main.querySelectorAll("details")].map((each) => each.open);
  const read = async () => {
    // Nobody loses what they are typing; it is read again when they are done.
    late = main.contains(document.activeElement) && typing(document.activeElement) !== null;
    if (late) return false;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer?.ok) return false;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const opened = summaries();
    const focused = document.activeElement?.closest?.("[data-item]")?.getAttribute("href");
    main.replaceChildren(...fresh.querySelector("main").childNodes);
    if (opened.length === summaries().length) {
      main.querySelectorAll("details").forEach((each, at) => (each.open = opened[at]));
    }
    if (focused) main.querySelector(`[data-item][href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    document.title = fresh.title;
    for (const old of document.querySelectorAll(".banner")) old.remove();
    main.before(...fresh.querySelectorAll(".banner"));
    document.querySelector("header").replaceWith(fresh.querySelector("header"));
    addCopies();
    return true;
  };
  const listen = () => {
    // A browser has few streams to one place: a tab that nobody sees needs none.
    source?.close();
    source = null;
    if (document.hidden) return;
    const address = new URL(main.dataset.events, location.href);
    address.searchParams.set("since", since);
    source = new EventSource(address);
    source.addEventListener("changed", (event) => {
      read().then((done) => done && (since = event.lastEventId));
    });
  };
  main.addEventListener("focusout", () => late && setTimeout(read));
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", () => source?.close());
  listen();
}
