// Forms: what does not fit is said while it is typed, and what is sent is never lost.
import { parsed, show } from "./parts.js";

// By the same rules that hold when it is sent.
let timer = 0;
let turn = 0;
const touched = new Set();

function tell(form, errors) {
  const place = (pointer) => {
    for (let at = pointer; at; at = at.slice(0, at.lastIndexOf("/"))) {
      const found = form.querySelector(`[data-errors="${CSS.escape(at)}"]`);
      if (found) return [found, pointer.slice(at.length)];
    }
    return [form.querySelector('[data-errors=""]'), pointer];
  };
  for (const each of form.querySelectorAll("[data-errors]")) each.replaceChildren();
  for (const { field, reason } of errors) {
    const [target, rest] = place(field);
    const line = document.createElement("p");
    line.textContent = rest ? `${rest} ${reason}` : reason;
    target.append(line);
  }
}

async function check(form) {
  const mine = ++turn;
  const body = new URLSearchParams(new FormData(form));
  const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
  if (!answer?.ok || mine !== turn) return;
  const errors = await answer.json();
  // Of fields that nobody has been at yet, nothing is wrong yet.
  const known = ({ field }) => [...touched].some((name) => name === "_json" || `f${field}`.startsWith(name));
  if (mine === turn && form.isConnected) tell(form, errors.filter(known));
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form?.dataset.check) return;
  touched.add(event.target.name);
  clearTimeout(timer);
  timer = setTimeout(check, 400, form);
});

// Sent from where it stands: a dashboard that is gone, or has been started anew, takes nothing away that was written,
// and going back leads to the page before, not to a form that a browser would send once more.
document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (form.method !== "post") return;
  event.preventDefault();
  if (form.inert) return;
  const focused = document.activeElement;
  clearTimeout(timer);
  turn++;
  let answer = await send(form, submitter);
  if (answer?.status === 403 && (await isRenewed(form))) answer = await send(form, submitter);
  if (answer?.redirected) {
    location.assign(answer.url);
    return;
  }
  const text = answer ? await answer.text().catch(() => "") : "";
  form.inert = false;
  const fresh = parsed(text);
  if (fresh.querySelector("#main form[method=post], #main .notice")) replace(fresh, submitter);
  else {
    complain(form, fresh.querySelector("main p")?.textContent);
    focused?.focus({ preventScroll: true });
  }
});

function send(form, submitter) {
  const body = new URLSearchParams(new FormData(form, submitter));
  // What would be typed now is in no form any more.
  form.inert = true;
  return fetch(form.action, { method: "POST", body }).catch(() => null);
}

// Whoever has been let in anew, in another tab, has another mark.
async function isRenewed(form) {
  const answer = await fetch(location.href).catch(() => null);
  const mark = answer?.ok ? parsed(await answer.text()).querySelector("meta[name=csrf]") : null;
  if (mark) form.elements._csrf.value = mark.content;
  return mark !== null;
}

function replace(fresh, submitter) {
  show(fresh);
  const main = document.querySelector("main");
  const again = submitter && `[name="${CSS.escape(submitter.name)}"][value="${CSS.escape(submitter.value)}"]:not(.hidden)`;
  const next = main.querySelector("[aria-invalid=true], #whole") ?? (again && main.querySelector(again)) ?? main;
  next.focus({ preventScroll: true });
  (main.querySelector(".notice") ?? next).scrollIntoView({ block: "nearest" });
}

function complain(form, why) {
  form.querySelector(".unsent")?.remove();
  const line = document.createElement("p");
  line.className = "errors unsent";
  line.setAttribute("role", "alert");
  const said = why ? `The dashboard has not taken it: ${why}` : "The dashboard cannot be reached.";
  line.textContent = `${said} What you have written is still here.`;
  form.append(line);
  line.scrollIntoView({ block: "nearest" });
}
