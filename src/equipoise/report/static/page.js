// Draws the charts of a study's page, and redraws the page when the server sends what has changed.
const NARROW = 560;
const COLUMNS = [0, 1, 2, 4];  // of the table, on a phone
const AGAIN = 5000;  // milliseconds until a lost connection is tried again

const $ = (id) => document.getElementById(id);
const read = (id) => JSON.parse($(id).textContent);

let view = read("view");
let specs = read("specs");
const drawn = {};

const options = {
  actions: false,
  ast: true,  // expressions are interpreted, so that nothing need be evaluated as code
  defaultStyle: false,
  logLevel: 1,
  mode: "vega-lite",
  renderer: "svg",
  tooltip: { disableDefaultStyle: true },
};

function fitted(name, width) {
  const spec = structuredClone(specs[name]);
  spec.data.values = view.charts[name];
  if (width < NARROW) {
    for (const { encoding } of spec.layer ?? [spec]) {
      const axis = encoding.y?.axis;
      if (axis?.labelLimit) Object.assign(axis, { labelLimit: Math.round(0.38 * width), labelFontSize: 12 });
      if (encoding.color?.legend) encoding.color.legend.columns = 2;
      if (encoding.strokeDash?.legend) encoding.strokeDash.legend.columns = 2;
    }
  }
  return spec;
}

async function draw(name) {
  const element = $(`chart-${name}`);
  if (!element || !window.vegaEmbed) return;
  $(`card-${name}`)?.removeAttribute("hidden");
  const width = element.clientWidth;
  if (!width) return;
  drawn[name]?.finalize();
  const holder = document.createElement("div");
  holder.className = "chart";
  element.replaceChildren(holder);
  drawn[name] = await window.vegaEmbed(holder, fitted(name, width), options);
}

async function redraw(name) {
  await drawn[name].view.data(name, view.charts[name]).runAsync();
}

async function drawAll() {
  for (const name of Object.keys(specs)) {
    try {
      await draw(name);
    } catch (error) {
      console.error(`cannot draw ${name}`, error);
    }
  }
}

// ---- texts

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function write(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

function list(node, tag, sentences) {
  if (node && JSON.stringify([...node.children].map((each) => each.textContent)) !== JSON.stringify(sentences)) {
    node.replaceChildren(...sentences.map((sentence) => element(tag, sentence)));
  }
}

function figure(card, { label, value, unit, note, share }) {
  write(card.querySelector(".label"), label);
  const number = card.querySelector(".value");
  if (number.textContent.trim() !== `${value} ${unit}`.trim()) {
    number.replaceChildren(`${value} `, element("span", unit, "unit"));
  }
  write(card.querySelector(".note"), note);
  let bar = card.querySelector("progress");
  if (share === null) {
    bar?.remove();
    return;
  }
  if (!bar) {
    bar = element("progress");
    bar.max = 1;
    bar.setAttribute("aria-label", `${label}: share of the budget`);
    number.after(bar);
  }
  bar.value = share;
}

function table({ titles, target, rows, note }) {
  const cell = (tag, text, i, scope) => {
    const made = element(tag, text, i !== undefined && !COLUMNS.includes(i) ? "wide-only" : "");
    if (scope) made.scope = scope;
    return made;
  };
  const head = titles.map((title, i) => cell("th", title, i, "col"));
  if (target) head.push(cell("th", target, undefined, "col"));
  const body = rows.map(({ cells, status, tone }) => {
    const line = element("tr");
    line.append(...cells.map((text, i) => (i ? cell("td", text, i) : cell("th", text, 0, "row"))));
    if (target) {
      const last = element("td");
      last.append(element("span", status, `pill ${tone}`));
      line.append(last);
    }
    return line;
  });
  $("table").tHead.rows[0].replaceChildren(...head);
  $("table").tBodies[0].replaceChildren(...body);
  write($("note"), note);
}

// ---- a page that is live

async function update(next) {
  const reshaped = JSON.stringify(next.shape) !== JSON.stringify(view.shape);
  const before = view;
  view = next;
  const status = $("status");
  write(status, next.study.words);
  status.className = `pill ${next.study.tone}`;
  write($("verdict"), next.verdict);
  next.figures.forEach((each, i) => figure($("figures").children[i], each));
  if (JSON.stringify(before.table) !== JSON.stringify(next.table)) table(next.table);
  list($("remarks"), "li", next.remarks);
  list($("account"), "p", next.account);
  document.dispatchEvent(new CustomEvent("view", { detail: next }));
  if (reshaped) {
    const reply = await fetch(document.body.dataset.specs);
    if (reply.ok) specs = await reply.json();
    await drawAll();
    return;
  }
  for (const name of Object.keys(drawn)) {
    if (JSON.stringify(before.charts[name]) !== JSON.stringify(next.charts[name])) await redraw(name);
  }
}

function follow(address) {
  let newest = null;
  let busy = false;
  const work = async () => {
    busy = true;
    while (newest && !document.hidden) {
      const next = newest;
      newest = null;
      try {
        await update(next);
      } catch (error) {
        console.error("cannot redraw", error);
      }
    }
    busy = false;
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && newest && !busy) work();
  });
  const connection = $("connection");
  const connect = () => {
    const events = new EventSource(address);
    events.addEventListener("view", (event) => {
      newest = JSON.parse(event.data);
      if (!busy) work();
    });
    events.addEventListener("end", ({ data }) => {
      events.close();
      write(connection, data === "deleted" ? "This study was deleted." : "You are logged out; reload the page to log in.");
      connection?.removeAttribute("hidden");
    });
    events.addEventListener("open", () => connection?.setAttribute("hidden", ""));
    events.addEventListener("error", () => {
      connection?.removeAttribute("hidden");
      // A browser tries again where nobody answered, and gives up where a proxy did.
      if (events.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN);
    });
  };
  connect();
}

let narrow = window.innerWidth < NARROW;
window.addEventListener("resize", () => {
  if (narrow !== window.innerWidth < NARROW) {
    narrow = !narrow;
    drawAll();
  }
});

await drawAll();
if (document.body.dataset.events) follow(document.body.dataset.events);
