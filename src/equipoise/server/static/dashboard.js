// What can be done on the dashboard: create, pause, extend, archive, delete, keys, copy; and the list that stays true.
const { root, csrf, study } = document.body.dataset;
const api = `${root}/api/v1/studies`;
const $ = (id) => document.getElementById(id);

async function send(method, address, body) {
  const headers = { "X-CSRF-Token": csrf };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const reply = await fetch(address, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (reply.status === 401) location.assign(`${root}/login`);
  const found = await reply.json().catch(() => ({}));  // nothing after a deletion, or what a proxy says
  if (!reply.ok) throw new Error(found.detail ?? `the service answered ${reply.status}; try again`);
  return found;
}

function onSubmit(form, work) {
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button.main, button:not([type])");
    const error = form.querySelector(".error");
    button.disabled = true;
    if (error) error.textContent = "";
    try {
      await work(new FormData(form));
    } catch (refused) {
      if (error) error.textContent = refused.message;
      else alert(refused.message);
    } finally {
      button.disabled = false;
    }
  });
}

// A number, or a share such as 3%; nothing where the field is empty.
function wanted(text) {
  const given = text.trim();
  if (!given) return undefined;
  return given.endsWith("%") || Number.isNaN(Number(given)) ? given : Number(given);
}

function numberIn(text, what) {
  const number = Number(text.trim());
  if (!text.trim() || !Number.isFinite(number)) throw new Error(`${what} must be a number`);
  return number;
}

// ---- one study

// The buttons that do something in this state.
function offer(status) {
  for (const each of document.querySelectorAll("[data-state]")) {
    each.hidden = !each.dataset.state.split(" ").includes(status);
  }
}

for (const button of document.querySelectorAll("[data-post]")) {
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      offer((await send("POST", button.dataset.post)).status);
    } catch (refused) {
      alert(refused.message);
    } finally {
      button.disabled = false;
      button.closest("details")?.removeAttribute("open");
    }
  });
}

for (const button of document.querySelectorAll("[data-dialog]")) {
  button.addEventListener("click", () => {
    button.closest("details")?.removeAttribute("open");
    const dialog = $(button.dataset.dialog);
    dialog.querySelector("form").reset();
    dialog.querySelector(".error").textContent = "";
    dialog.showModal();
  });
}
for (const button of document.querySelectorAll("[data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

document.addEventListener("view", ({ detail }) => {
  const { status, budget } = detail.study;
  offer(["paused", "archived"].includes(status) ? status : "open");
  if ($("budget")) $("budget").defaultValue = budget ?? "";
});

onSubmit($("extend-form"), async (form) => {
  const budget = form.get("budget").trim();
  const body = { budget: budget ? numberIn(budget, "the budget") : null };
  const precision = wanted(form.get("precision"));
  if (precision !== undefined) body.precision = precision;
  await send("POST", $("extend-form").dataset.api, body);
  $("extend").close();
});

onSubmit($("delete-form"), async (form) => {
  if (form.get("confirm").trim() !== study) throw new Error(`type ${study} to confirm`);
  await send("DELETE", $("delete-form").dataset.api);
  location.assign(`${root}/`);
});

// Origins, one a line; of an address with a path, its origin.
const originsIn = (text) =>
  text
    .split(/\s+/)
    .filter(Boolean)
    .map((each) => (/^https?:\/\/[^/]+\//.test(each) && URL.canParse(each) ? new URL(each).origin : each));

onSubmit($("pages-form"), async (form) => {
  const { poll } = await send("GET", $("pages-form").dataset.api);
  const origins = originsIn(form.get("origins"));
  await send("PUT", `${$("pages-form").dataset.api}/poll`, { ...poll, origins });
  $("origins").defaultValue = origins.join("\n");
  $("allowed").textContent = origins.includes("*") ? "all pages" : origins.join(", ") || "no page yet";
  $("pages").close();
});

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = $(button.dataset.copy);
    const copied = button.closest(".card").querySelector(".copied");
    try {
      await navigator.clipboard.writeText(source.textContent);
      copied.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(source);
      copied.textContent = "Selected: press Ctrl+C to copy.";
    }
  });
}

// ---- keys

function secret({ id, role, key }) {
  const shown = $("secret");
  shown.querySelector("span").textContent = role === "ask" ? "ask key, for web pages:" : `${role} key, shown only now:`;
  $("key").textContent = key;
  shown.hidden = false;
  shown.parentElement.querySelector(".copied").textContent = "";
  embed(`eqk_${id}_[\\w-]+`, key);
  if (role === "ask") embed(NO_KEY, key);
}

// What can be copied names the service as this browser reaches it.
for (const each of [$("snippet"), $("code")]) {
  if (each) each.textContent = each.textContent.replace("https://polls.example", location.origin);
}

// What the snippet has in place of a key that was revoked, until there is another one.
const NO_KEY = "make an ask key below";

function embed(old, key) {
  const snippet = $("snippet");
  if (snippet) snippet.textContent = snippet.textContent.replace(new RegExp(old), key);
}

function keyRow({ id, role, label }) {
  const line = $("keys").querySelector("tbody").insertRow();
  line.closest("table").hidden = false;
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = label || "—";
  line.append(head);
  line.insertCell().textContent = role;
  const code = document.createElement("code");
  code.textContent = id;
  line.insertCell().append(code);
  const buttons = line.insertCell();
  buttons.className = "buttons";
  for (const [text, data, path] of [["Rotate", "rotate", `/${id}/rotate`], ["Revoke", "revoke", `/${id}`]]) {
    const button = document.createElement("button");
    button.textContent = text;
    button.dataset[data] = $("new-key").dataset.api + path;
    buttons.append(button, " ");
  }
}

onSubmit($("new-key"), async (form) => {
  const made = await send("POST", $("new-key").dataset.api, { role: form.get("role"), label: form.get("label") });
  keyRow(made);
  secret(made);
  $("key-label").value = "";
});

$("keys")?.addEventListener("click", async ({ target }) => {
  try {
    if (target.dataset.rotate && confirm("Replace this key? The old one stops working.")) {
      secret(await send("POST", target.dataset.rotate));
    } else if (target.dataset.revoke && confirm("Revoke this key?")) {
      await send("DELETE", target.dataset.revoke);
      const row = target.closest("tr");
      embed(`eqk_${row.querySelector("code").textContent}_[\\w-]+`, NO_KEY);
      row.remove();
    }
  } catch (refused) {
    alert(refused.message);
  }
});

// ---- a new study

const slug = (title) =>
  title
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[^A-Za-z0-9._]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|-+$/g, "")
    .toLowerCase()
    .slice(0, 80);

function created(form) {
  const shown = [...$("arms").querySelectorAll(".arm")]
    .map((arm) => Object.fromEntries([...arm.querySelectorAll("input")].map((each) => [each.name, each.value.trim()])))
    .filter(({ title }) => title);
  const names = shown.map(({ title }) => title);
  if (new Set(names).size < names.length) throw new Error("arms must have different names");
  const answer = form.get("answer");
  const body = {
    name: form.get("name").trim(),
    title: form.get("study-title").trim(),
    arms: names,
    poll: {
      question: form.get("question").trim(),
      answer,
      arms: Object.fromEntries(
        shown.map(({ title, text, picture }) => [title, { title, text, picture: picture || null }]),
      ),
      respect_dnt: form.has("respect_dnt"),
      origins: originsIn(form.get("origins")),
    },
  };
  if (form.get("budget").trim()) body.budget = numberIn(form.get("budget"), "the budget");
  const precision = wanted(form.get("precision"));
  if (precision !== undefined) body.precision = precision;
  const open = answer === "number" || answer === "custom";
  if (open && (form.get("low").trim() || form.get("high").trim())) {
    body.support = [
      numberIn(form.get("low"), "the smallest possible answer"),
      numberIn(form.get("high"), "the largest possible answer"),
    ];
  }
  return body;
}

const form = $("new-study");
if (form) {
  let named = false;
  $("name").addEventListener("input", () => (named = true));
  $("title").addEventListener("input", () => {
    if (!named) $("name").value = slug($("title").value);
  });
  form.addEventListener("change", ({ target }) => {
    if (target.name === "answer") $("support").hidden = !["number", "custom"].includes(target.value);
  });
  $("add-arm").addEventListener("click", () => {
    $("arms").append($("arm").content.cloneNode(true));
    $("arms").querySelector(".arm:last-child input").focus();
  });
  $("arms").addEventListener("click", ({ target }) => {
    if (target.dataset.remove !== undefined && $("arms").querySelectorAll(".arm").length > 1) {
      target.closest(".arm").remove();
      $("add-arm").focus();
    }
  });
  onSubmit(form, async (data) => {
    const body = created(data);
    await send("POST", form.dataset.api, body);
    location.assign(`${root}/studies/${encodeURIComponent(body.name)}`);
  });
}

// ---- the list

const EVERY = 5000;

function spark(svg, rows) {
  const points = rows.filter(({ kind }) => kind === "widest interval");
  if (points.length < 2) return;
  const scale = (values, size) => {
    const logs = values.map(Math.log);
    const [low, high] = [Math.min(...logs), Math.max(...logs)];
    return logs.map((each) => (high > low ? (size * (each - low)) / (high - low) : size / 2));
  };
  const x = scale(points.map(({ samples }) => samples), 100);
  const y = scale(points.map(({ width }) => width), 26);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", `M${x.map((each, i) => `${each.toFixed(1)} ${(28 - y[i]).toFixed(1)}`).join("L")}`);
  svg.replaceChildren(path);
}

async function fill(card) {
  const reply = await fetch(`${api}/${encodeURIComponent(card.dataset.study)}/view`);
  if (!reply.ok) return;
  const view = await reply.json();
  part(card, "state").textContent = view.study.words;
  part(card, "state").className = `pill ${view.study.tone}`;
  part(card, "samples").textContent = view.study.samples.toLocaleString("en");
  part(card, "verdict").textContent = view.verdict;
  const [{ label, value }] = view.figures;
  part(card, "precision").textContent = value === "—" ? "" : `${label.toLowerCase()} ${value}`;
  const bar = card.querySelector("progress");
  if (bar && view.figures[1].share !== null) bar.value = view.figures[1].share;
  spark(part(card, "spark"), view.charts.precision);
}

const part = (card, name) => card.querySelector(`[data-part=${name}]`);
const cards = () => [...document.querySelectorAll("[data-study].card")];

// New studies appear, deleted ones go, and all others say how far they are.
async function relist() {
  const reply = await fetch(`${root}/`);
  if (reply.redirected) location.assign(`${root}/login`);
  if (!reply.ok) return;
  const next = new DOMParser().parseFromString(await reply.text(), "text/html");
  const fresh = [...next.querySelectorAll("[data-study].card")];
  const known = new Map(cards().map((card) => [card.dataset.study, card]));
  if (!$("studies") || !next.getElementById("studies")) {
    if (known.size !== fresh.length) document.querySelector("main").replaceChildren(...next.querySelector("main").children);
    return;
  }
  document.querySelector(".lead").textContent = next.querySelector(".lead").textContent;
  for (const card of fresh) {
    const old = known.get(card.dataset.study);
    if (!old) continue;
    for (const name of ["state", "samples"]) {
      part(old, name).textContent = part(card, name).textContent;
      part(old, name).className = part(card, name).className;
    }
    const [bar, now] = [old.querySelector("progress"), card.querySelector("progress")];
    if (bar && now) bar.value = now.value;
  }
  const names = fresh.map((card) => card.dataset.study);
  if (JSON.stringify(names) !== JSON.stringify([...known.keys()])) {
    $("studies").replaceChildren(...fresh.map((card) => (known.get(card.dataset.study) ?? card).closest("li")));
  }
}

async function refresh() {
  try {
    if (!document.hidden) await relist();
    for (const card of cards()) {
      const { top, bottom } = card.getBoundingClientRect();
      if (!document.hidden && bottom > 0 && top < innerHeight) await fill(card);
    }
  } catch (error) {
    console.warn("cannot read the studies", error);
  }
  setTimeout(refresh, EVERY);
}
if ($("list")) refresh();
