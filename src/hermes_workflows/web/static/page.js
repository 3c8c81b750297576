// What makes the pages quicker to use; without it everything works the same.
import { addCopies, typing } from "./parts.js";
import "./form.js";
import "./live.js";

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

// After a page that says what is wrong, the first such field is where one goes on.
// Not before all is loaded: going to the fragment of the address takes the focus away.
addEventListener("load", () => document.querySelector("[aria-invalid=true]")?.focus());

addCopies();

// What has just been done is told once: not again when the page is read anew, nor to whoever keeps its address.
const arrived = new URL(location.href);
if (["done", "recorded"].some((name) => arrived.searchParams.has(name))) {
  arrived.searchParams.delete("done");
  arrived.searchParams.delete("recorded");
  history.replaceState(null, "", arrived);
}
