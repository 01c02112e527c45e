// Light, dark, or as the system has it.

import { h } from "./dom.js";

const KEY = "headroom-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const WORDS = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };

function kept() {
  try {
    return NEXT[localStorage.getItem(KEY)] ? localStorage.getItem(KEY) : "system";
  } catch {
    return "system";
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    /* It holds until the page is left. */
  }
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

/** The button that changes the theme; `changed` draws again everything with colours of its own. */
export function themeButton(changed) {
  let theme = kept();
  apply(theme);
  const button = h("button", { type: "button", id: "theme" }, WORDS[theme]);
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    keep(theme);
    apply(theme);
    button.textContent = WORDS[theme];
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
  return button;
}
