// Finds the figures of a page, draws them, links their cursors, and hides algorithms that a reader takes away.

import { watch } from "./copy.js";
import { html } from "./marks.js";
import { button } from "./rows.js";
import * as bars from "./bars.js";
import * as distribution from "./distribution.js";
import * as scatter from "./scatter.js";
import * as shares from "./shares.js";
import * as timelines from "./timelines.js";

const KINDS = { bars, interval: bars, distribution, scatter, shares, pie: shares, timelines };

/** One moment, and one part of the time axis, that several figures show; each follows them, any may change them. */
function linkOf(links, group, place, drawn) {
  if (!links.has(group)) links.set(group, { time: undefined, view: undefined, followers: new Map() });
  const link = links.get(group);
  const tell = (anew) => {
    for (const follower of link.followers.values()) follower(link.time, link.view, anew);
  };
  return {
    move(time) {
      link.time = time;
      tell(false);
    },
    zoom(view) {
      link.view = { low: view.low, high: view.high };
      tell(true);
      drawn();
    },
    follow(follower) {
      link.followers.set(place, follower);
      follower(link.time, link.view, false);
    },
  };
}

/** Opens the set-up that the address names. */
function unfold() {
  document.getElementById(location.hash.slice(1))?.querySelector("details.setup")?.setAttribute("open", "");
}

function start() {
  watch();
  unfold();
  addEventListener("hashchange", unfold);
  const links = new Map();
  const drawn = new Map();
  const form = document.querySelector(".toggles");
  const faded = () => {
    if (form) for (const host of drawn.keys()) fade(form, host);
  };
  const draw = (host) => {
    const { figure, link, width: before } = drawn.get(host);
    const width = Math.floor(host.clientWidth);
    // What is folded away is drawn when it opens.
    if (!width || width === before || host.checkVisibility?.() === false) return;
    drawn.get(host).width = width;
    host.replaceChildren();
    KINDS[figure.kind].draw(figure, host, width, link);
    if (form) fade(form, host);
  };
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => draw(entry.target)));
  for (const source of document.querySelectorAll("script.chart-data")) {
    const content = JSON.parse(source.textContent);
    const host = source.parentElement.querySelector(".chart");
    const figure = KINDS[content.kind].read(content);
    drawn.set(host, { figure, link: linkOf(links, host.closest("section"), host, faded), width: 0 });
    draw(host);
    observer.observe(host);
    button(figure, source.parentElement.querySelector("details") ?? source.parentElement, html);
  }
  if (!form) return;
  form.hidden = false;
  form.addEventListener("change", () => toggle(form));
}

const boxesOf = (form) => [...form.querySelectorAll("input")].filter((box) => box.checked);

/** Rows and figures of algorithms that a reader has taken away go, their marks in other figures fade. */
function toggle(form) {
  const shown = new Set(boxesOf(form).map((box) => box.value));
  for (const part of document.querySelectorAll("[data-algorithms]")) {
    const any = part.dataset.algorithms.split(" ").some((name) => shown.has(name));
    part.toggleAttribute("data-hidden", !any);
  }
  for (const host of document.querySelectorAll(".chart")) fade(form, host);
}

function fade(form, host) {
  const colours = new Set(boxesOf(form).map((box) => box.dataset.colour));
  for (const part of host.querySelectorAll("[data-colour]")) {
    part.toggleAttribute("data-faded", !colours.has(part.dataset.colour));
  }
}

start();
