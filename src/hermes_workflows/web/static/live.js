// A page that is kept up to date: a stream says that it has changed, and it is read again.
import { parsed, show, typing } from "./parts.js";

const LOST = "The dashboard cannot be reached; this page shows what was. It is tried again.";
const CLOSED = "This page is not kept up to date any more: load it again.";
const RETRY = 5000;
const MINUTE = 60000;

const main = document.querySelector("main[data-events]");
if (main) keep(new URL(main.dataset.events, location.href));

function keep(address) {
  let source = null;
  // What is shown, and what there is.
  let since = address.searchParams.get("since");
  let newest = since;
  let busy = false;
  let late = false;
  let silent = 0;

  const tell = (text) => {
    for (const old of document.querySelectorAll(".banner.lost")) old.remove();
    if (!text) return;
    const line = document.createElement("p");
    line.className = "banner lost";
    line.setAttribute("role", "status");
    line.textContent = text;
    main.before(line);
  };

  const summaries = () => [...main.querySelectorAll("details")].map((each) => each.open);
  const put = (fresh) => {
    const opened = summaries();
    const focused = document.activeElement?.closest?.("[data-item]")?.getAttribute("href");
    show(fresh);
    if (opened.length === summaries().length) {
      main.querySelectorAll("details").forEach((each, at) => (each.open = opened[at]));
    }
    if (focused) main.querySelector(`[data-item][href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };

  // Nobody loses what they are typing; it is read again when they are done.
  const isTyping = () => main.contains(document.activeElement) && typing(document.activeElement) !== null;

  const read = async () => {
    const answer = await fetch(location.href).catch(() => null);
    const text = await answer?.text().catch(() => null);
    late = isTyping();
    if (late) return false;
    const fresh = answer?.ok && text ? parsed(text) : null;
    if (fresh?.querySelector("main")) {
      put(fresh);
      return true;
    }
    tell(answer ? CLOSED : LOST);
    if (!answer) setTimeout(catchUp, RETRY, true);
    return false;
  };

  const catchUp = async (anyway = false) => {
    if (busy) return;
    late = isTyping();
    if (late) return;
    busy = true;
    while (anyway || newest !== since) {
      const version = newest;
      const began = performance.now();
      anyway = false;
      if (!(await read())) break;
      since = version;
      // A page that takes long to make is asked for as rarely: half of the time at most.
      await new Promise((done) => setTimeout(done, performance.now() - began));
    }
    busy = false;
  };

  const hush = () => {
    source?.close();
    source = null;
    clearTimeout(silent);
  };
  const listen = () => {
    // A browser has few streams to one place: a tab that nobody sees needs none.
    hush();
    if (document.hidden) return;
    address.searchParams.set("since", since);
    source = new EventSource(address);
    source.addEventListener("changed", (event) => {
      newest = event.lastEventId;
      catchUp();
    });
    source.addEventListener("open", () => {
      clearTimeout(silent);
      tell("");
    });
    source.addEventListener("error", () => {
      clearTimeout(silent);
      // Every stream ends once, and begins anew by itself; what was refused does not.
      if (source?.readyState === EventSource.CLOSED) tell(CLOSED);
      else silent = setTimeout(tell, RETRY, LOST);
    });
  };

  main.addEventListener("focusout", () => late && setTimeout(catchUp));
  document.addEventListener("visibilitychange", listen);
  addEventListener("pagehide", hush);
  // Also when a browser has kept the page as it was, and somebody goes back to it.
  addEventListener("pageshow", (event) => event.persisted && listen());
  // Ages grow while nothing happens.
  setInterval(() => document.hidden || catchUp(true), MINUTE);
  listen();
}
