// The tab: our pages as the server made them, in a shadow root, so that neither style reaches the other's page.
// Nothing of a page is executed. Links and forms go through Hermes' own fetch, which says who is logged in.
(function () {
  "use strict";
  const SDK = window.__HERMES_PLUGIN_SDK__;
  if (!SDK || !window.__HERMES_PLUGINS__) return;
  const BASE = "/api/plugins/hermes-workflows/pages";
  const h = SDK.React.createElement;

  // The address within our pages that a link or an answer has; null for one that leads out of them.
  function within(address) {
    const url = new URL(address, location.href);
    const at = url.pathname.indexOf(`${BASE}/`);
    if (url.origin !== location.origin || at < 0) return null;
    return url.pathname.slice(at + BASE.length) + url.search + url.hash;
  }

  function show(host) {
    const root = host.shadowRoot || host.attachShadow({ mode: "open" });
    let here = "/";
    let turn = 0;
    let listening = null;

    function say(text) {
      const line = document.createElement("p");
      line.setAttribute("role", "alert");
      line.textContent = text;
      root.replaceChildren(line);
    }

    async function style() {
      const answer = await SDK.authedFetch(`${BASE}/static/style.css`);
      const sheet = new CSSStyleSheet();
      // What stands for the whole page in the file is the shadow root's host here.
      sheet.replaceSync((await answer.text()).replace(/:root\b/g, ":host").replace(/^body\b/gm, ":host"));
      root.adoptedStyleSheets = [sheet];
    }

    function place(text) {
      const fresh = new DOMParser().parseFromString(text, "text/html");
      // Keys belong to Hermes here.
      for (const each of fresh.querySelectorAll("script, .skip, .keys")) each.remove();
      root.replaceChildren(...[...fresh.body.childNodes].map((each) => document.importNode(each, true)));
      const wrong = root.querySelector("[aria-invalid=true]");
      const target = here.includes("#") && root.getElementById(here.slice(here.indexOf("#") + 1));
      if (wrong) wrong.focus();
      else if (target) target.scrollIntoView();
      listen();
    }

    async function go(address, options, quiet) {
      const mine = ++turn;
      const hash = address.includes("#") ? address.slice(address.indexOf("#")) : "";
      const answer = await SDK.authedFetch(BASE + address.split("#")[0], options).catch(() => null);
      if (mine !== turn) return;
      if (!answer) {
        if (!quiet) say("Hermes' dashboard cannot be reached.");
        return;
      }
      const type = answer.headers.get("content-type") || "";
      if (type.startsWith("application/json")) {
        const said = await answer.json();
        say([said.error || said.detail, said.hint].filter(Boolean).join(" — "));
      } else if (type.startsWith("text/html")) {
        const text = await answer.text();
        if (mine !== turn) return;
        here = (within(answer.url) || address.split("#")[0]) + hash;
        place(text);
      } else {
        save(await answer.blob(), address);
      }
    }

    function save(blob, address) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = address.split(/[?#]/)[0].split("/").pop() || "file";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    }

    // The stream of our own pages: it says that this one is out of date. Read by fetch, which can say who we are.
    async function listen() {
      listening?.abort();
      const main = root.querySelector("main[data-events]");
      if (!main || document.hidden) return;
      const mine = (listening = new AbortController());
      try {
        const answer = await SDK.authedFetch(BASE + within(main.dataset.events), { signal: mine.signal });
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let said = ""; ; ) {
          const { value, done } = await reader.read();
          if (done) break;
          said += value;
          if (/^event: changed$/m.test(said) && !typing()) return void go(here, undefined, true);
          said = said.slice(-4096);
        }
        if (answer.ok) setTimeout(() => listening === mine && listen(), 2000);
      } catch {
        // Gone with the page, or with the server: whoever comes back looks anew.
      }
    }

    const typing = () => root.activeElement?.closest("input, textarea, select") ?? null;

    function clicked(event) {
      const link = event.composedPath().find((each) => each instanceof HTMLAnchorElement);
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      const written = link.getAttribute("href") || "";
      if (written.startsWith("#")) {
        event.preventDefault();
        root.getElementById(written.slice(1))?.scrollIntoView();
        return;
      }
      const address = within(link.href);
      if (address === null) return;
      event.preventDefault();
      go(address);
    }

    function sent(event) {
      const form = event.target;
      // Fields may be called like a form's own properties: attributes are asked for. A button may have its own.
      const said = (name) => event.submitter?.getAttribute(`form${name}`) || form.getAttribute(name) || "";
      const address = within(said("action") || BASE + here);
      event.preventDefault();
      if (address === null) return;
      const fields = new URLSearchParams(new FormData(form, event.submitter));
      if (said("method").toLowerCase() === "post") go(address, { method: "POST", body: fields });
      else go(`${address.split(/[?#]/)[0]}?${fields}`);
    }

    const seen = () => (document.hidden ? listening?.abort() : go(here, undefined, true));
    root.addEventListener("click", clicked);
    root.addEventListener("submit", sent);
    document.addEventListener("visibilitychange", seen);
    style().catch(() => {});
    go(here);
    return () => {
      turn++;
      listening?.abort();
      root.removeEventListener("click", clicked);
      root.removeEventListener("submit", sent);
      document.removeEventListener("visibilitychange", seen);
    };
  }

  function Workflows() {
    const host = SDK.hooks.useRef(null);
    SDK.hooks.useEffect(() => show(host.current), []);
    return h("div", { ref: host });
  }

  window.__HERMES_PLUGINS__.register("hermes-workflows", Workflows);
})();
