"use strict";

// Elements, numbers and names. Data becomes text or the value of an attribute, never markup.

function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}

// Characters that hide or reorder others are spelled out: a name shall look like what it is.
function shown(text) {
  return String(text).replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0).toString(16)}}`,
  );
}

const NOTHING = "\u2013";
const MINUS = "\u2212";
const ARROW = "\u2192";
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const SMALL = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 2 });

function size(number) {
  const positive = Math.abs(number);
  return (positive >= 1 ? WHOLE : SMALL).format(positive);
}

function count(number) {
  return number == null ? NOTHING : (number < 0 ? MINUS : "") + size(number);
}

function signed(number) {
  return number > 0 ? `+${size(number)}` : count(number);
}

// The words of the terminal: one decimal, below 1 % two digits that count.
function share(fraction) {
  return fraction == null ? NOTHING : `${count(fraction * 100)} %`;
}

function percent(fraction) {
  if (fraction >= 10) return `x${size(fraction + 1)}`;
  return fraction == null ? NOTHING : `${signed(fraction * 100)} %`;
}

function growth(before, after) {
  if (before === after) return "unchanged";
  return before ? percent((after - before) / before) : "new";
}

// One tooltip for the whole page. Screen readers have the same words as labels.
const tip = {
  show(lines, x, y) {
    this.anchor = null;
    const box = document.getElementById("tip");
    box.replaceChildren(...lines.map((line) => h("div", {}, line)));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = Math.min(x + 12, document.documentElement.clientWidth - width - 8);
    const above = y + 18 + height > window.innerHeight;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, above ? y - height - 12 : y + 18)}px`;
  },
  // Of what has focus: it stays with the element when that is scrolled to.
  showFor(element, lines) {
    const place = element.getBoundingClientRect();
    this.show(lines, place.left, place.bottom - 12);
    this.anchor = () => this.showFor(element, lines);
  },
  hide() {
    tip.anchor = null;
    document.getElementById("tip").hidden = true;
  },
  scrolled() {
    if (tip.anchor) tip.anchor();
    else tip.hide();
  },
};
