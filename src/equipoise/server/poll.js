/*
 * Asks a visitor of any page one question of a study:
 *   <script async src="https://polls.example/poll.js" data-study="menu" data-key="the public key"></script>
 * docs/how-to/poll-visitors.md lists the options. Nothing here throws into the page: without the service, the page stays as it is.
 */
(() => {
  "use strict";

  const script = document.currentScript;
  const complain = (problem) => console.warn(`equipoise: ${problem}`);
  if (!script?.src) return complain("poll.js must be loaded by a plain script tag with a src");
  const options = script.dataset;
  const base = new URL(".", script.src).href;
  const words = { yes: "Yes", no: "No", send: "Send", skip: "Rather not say", thanks: "Thank you.", ...options };

  // ---- The visitor: {id} once a question was asked, {done, pending} once it is answered, {done} once that is delivered.

  const slot = `equipoise ${base} ${options.study}`;

  const recall = () => {
    try {
      return JSON.parse(localStorage.getItem(slot)) || {};
    } catch {
      return {};
    }
  };

  const remember = (record) => {
    try {
      localStorage.setItem(slot, JSON.stringify(record));
      return true;
    } catch {
      return false;
    }
  };

  // ---- The service.

  const post = (action, body, keepalive) =>
    fetch(`${base}api/v1/studies/${encodeURIComponent(options.study)}/${action}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${options.key}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      credentials: "omit",
      keepalive,
      signal: AbortSignal.timeout(20000),
    });

  // One question for this visitor with one of these kinds of answers, or null where there is none.
  const ask = async (answers) => {
    const { id = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(16)))) } = recall();
    // Whoever cannot be remembered is not asked. With Do Not Track, nothing is stored until the study asks all the same.
    const untracked = navigator.doNotTrack === "1" || navigator.globalPrivacyControl;
    if (!untracked && !remember({ id })) return null;
    const reply = await post("ask", { count: 1, respondent: id, answers });
    if (reply.status === 409) {
      const { type, detail } = await reply.json();
      complain(type.endsWith(":answer") ? "this study needs data-callback, as its answers are custom" : detail);
    }
    if (reply.status !== 200) return null;
    const { tickets: [ticket], question, answer, support, show } = await reply.json();
    if (recall().done) return null; // answered in another tab meanwhile
    remember({ id });
    return { ...ticket, ...show, question, kind: answer, support };
  };

  // Sends an answer until the service has taken or refused it, as one that comes too late, and says which. What is pending after that goes out on the next visit.
  const deliver = async (pending) => {
    for (const seconds of [0, 2, 10, 60]) {
      if (seconds) await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      try {
        const reply = await post("tell", { answers: [pending] }, true);
        if (reply.ok || (reply.status < 500 && ![401, 403, 408, 425, 429].includes(reply.status))) {
          const taken = reply.ok && ["taken", "known"].includes((await reply.json()).outcomes[0]);
          remember({ done: true });
          return taken;
        }
      } catch {
        // The service is away.
      }
    }
    return false;
  };

  // The two ways to settle a ticket. Whichever comes first counts, in this tab and in others.
  const settling = (ticket) => {
    let delivery;
    const settle = (answer) => {
      if (!delivery && recall().done) delivery = Promise.resolve(false);
      if (!delivery) {
        const pending = { ticket, ...answer };
        remember({ done: true, pending });
        delivery = deliver(pending);
      }
      return delivery;
    };
    const answer = (value) => {
      if (!Number.isFinite(typeof value === "boolean" ? Number(value) : value))
        throw new TypeError(`\`value\` must be a finite number or a boolean, got ${value}`);
      return settle({ value: Number(value) });
    };
    return { answer, decline: () => settle({ declined: true }) };
  };

  // ---- The card. Its style outranks that of the page: "!important" of a shadow root wins over "!important" outside.

  const dark = "--card:#1b1d22;--ink:#ececec;--soft:#a6adb9;--line:#2c2f36;--edge:#737b88;--accent:#8db0ff;--on:#10131a;color-scheme:dark";
  const style = `
:host { all: initial !important; display: block !important; margin: 1em 0 !important }
@media print { :host { display: none !important } }
* { box-sizing: border-box }
.card {
  --card: #fff; --ink: #1b1d21; --soft: #5d6470; --line: #e4e4df; --edge: #858b95; --accent: #2f5fd0; --on: #fff;
  color-scheme: light; max-width: 24em; padding: 1.125em; border: 1px solid var(--line); border-radius: .875em;
  background: var(--card); color: var(--ink); box-shadow: 0 8px 30px #0000000f; overflow-wrap: anywhere;
  font: 1em/1.45 Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
.dark { ${dark} }
@media (prefers-color-scheme: dark) { .auto { ${dark} } }
@media (prefers-reduced-motion: no-preference) { .card { animation: appear .25s } }
@keyframes appear { from { opacity: 0 } }
img { display: block; width: 100%; aspect-ratio: 16/7; object-fit: cover; border-radius: .625em; margin-bottom: .875em; background: var(--line) }
p { margin: 0 }
.title { font-size: 1.125em; font-weight: 700 }
.text, .question, .ends { color: var(--soft) }
.text ~ div .question { margin-top: .5em; color: var(--ink) }
.row { display: flex; gap: .5em; margin-top: .875em }
.ends { display: flex; justify-content: space-between; gap: 1em; margin-top: .375em; font-size: .8125em }
button, input {
  flex: 1; min-width: 0; min-height: 2.9em; padding: .5em; font: inherit; font-size: .9375em; color: inherit;
  background: var(--card); border: 1px solid var(--edge); border-radius: .625em;
}
input { flex: 2; padding: .5em .75em; font-size: 1em }
button { font-weight: 600; cursor: pointer }
button:hover { border-color: var(--ink); box-shadow: 0 0 0 1px var(--ink) }
.main { background: var(--accent); border-color: var(--accent); color: var(--on) }
.skip { width: 100%; margin-top: .5em; border-color: transparent; background: none; color: var(--soft); font-weight: 500 }
.skip:hover { border-color: transparent; box-shadow: none; text-decoration: underline }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.status { outline: none }
.status:not(:empty) { margin-top: .5em; font-weight: 600 }`;

  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  const button = (label, className, onclick) => make("button", { type: "button", className, onclick }, label);

  const row = (...children) => make("div", { className: "row" }, ...children);

  // What a visitor answers with, by kind of answer.
  const controls = {
    // Both look alike, so that the card suggests neither.
    "yes-no": (answer) => [row(button(words.yes, "main", () => answer(1)), button(words.no, "main", () => answer(0)))],

    "1-5": (answer) => {
      const scale = row(...[1, 2, 3, 4, 5].map((value) => button(value, "", () => answer(value))));
      const { low = "", high = "" } = options;
      if (!low && !high) return [scale];
      scale.firstChild.setAttribute("aria-describedby", "low");
      scale.lastChild.setAttribute("aria-describedby", "high");
      return [scale, make("div", { className: "ends" }, make("span", { id: "low" }, low), make("span", { id: "high" }, high))];
    },

    number: (answer, support) => {
      const field = make("input", { type: "number", step: "any", required: true, autocomplete: "off", inputMode: "decimal" });
      field.setAttribute("aria-labelledby", "title question");
      if (Array.isArray(support)) [field.min, field.max] = support;
      const onsubmit = (event) => {
        event.preventDefault();
        answer(field.valueAsNumber);
      };
      return [make("form", { onsubmit }, row(field, make("button", { className: "main" }, words.send)))];
    },
  };

  const picture = (src) => {
    const image = make("img", { alt: "", referrerPolicy: "no-referrer" }); // the title is beside it
    image.onerror = () => image.remove();
    image.src = src;
    return image;
  };

  // A group that a screen reader names after the arm and the question, and a status that it reads out in the end.
  const draw = (root, poll, { answer, decline }) => {
    const status = make("p", { className: "status", tabIndex: -1 });
    status.setAttribute("role", "status");
    const thank = (send) => (value) => {
      send(value);
      const focused = root.activeElement;
      group.remove();
      status.textContent = words.thanks;
      if (focused) status.focus({ preventScroll: true });
    };
    const group = make("div", {},
      make("p", { className: "question", id: "question" }, poll.question),
      ...controls[poll.kind](thank(answer), poll.support),
      button(words.skip, "skip", thank(decline)));
    group.setAttribute("role", "group");
    group.setAttribute("aria-labelledby", "title question");

    const card = make("div", { className: `card ${options.theme || "auto"}` });
    if (poll.picture) card.append(picture(poll.picture));
    card.append(make("p", { className: "title", id: "title" }, poll.title));
    if (poll.text) card.append(make("p", { className: "text" }, poll.text));
    card.append(group, status);
    root.append(card);
  };

  // ---- The page.

  const parsed = () =>
    new Promise((resolve) => {
      if (document.readyState !== "loading") resolve();
      else document.addEventListener("DOMContentLoaded", resolve);
    });

  const seen = (element) =>
    new Promise((resolve) => {
      const observer = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        resolve();
      }, { rootMargin: "200px" });
      observer.observe(element);
    });

  // An empty place: inside `data-target`, else where the script tag is, else at the end of the page.
  const placed = (target) => {
    const host = document.createElement("equipoise-poll");
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    const root = host.attachShadow({ mode: "closed" });
    root.adoptedStyleSheets = [sheet];
    if (target) target.append(host);
    else if (document.body.contains(script)) script.after(host);
    else document.body.append(host);
    return { host, root };
  };

  const show = async (target) => {
    const { host, root } = placed(target);
    try {
      await seen(host); // A visitor who never gets there takes no ticket.
      const poll = await ask(Object.keys(controls));
      if (poll) draw(root, poll, settling(poll.ticket));
    } finally {
      if (!root.childElementCount) host.remove();
    }
  };

  const call = async (callback, element) => {
    const { ticket, kind, ...poll } = (await ask()) || {};
    if (ticket) callback({ ...poll, element, ...settling(ticket) });
  };

  const start = async () => {
    await parsed();
    const { done, pending } = recall();
    if (pending) await deliver(pending);
    if (done) return;
    const { study, key, target, callback } = options;
    const element = target ? document.querySelector(target) : null;
    if (!study || !key) complain("data-study and data-key are required");
    else if (target && !element) complain(`data-target="${target}" matches nothing`);
    else if (!callback) await show(element);
    else if (typeof window[callback] !== "function") complain(`data-callback="${callback}" is not a function`);
    else await call(window[callback], element);
  };

  start().catch(complain);
})();
