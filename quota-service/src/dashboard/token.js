// The token: asked for where the service wants one, kept for this tab alone.

import { isRefused, setToken, token } from "./api.js";
import { field, h } from "./dom.js";

/** The button that asks, by its words. */
export const ASK = "Token …";
/** Of a token that the service refuses. */
export const INVALID = "The token of this tab is not valid, or no longer.";

let dialog = null;
/** A reader who has cancelled is not asked again by an automatic refresh. */
let declined = false;

function close() {
  dialog?.close();
}

/** Asks for a token. `why` is the answer of the service; `after` is done once there is a new one. */
export function askForToken(why, after) {
  if (dialog?.open) return;
  dialog?.remove();
  const input = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  let isUsed = false;
  const keep = (event) => {
    event.preventDefault();
    isUsed = true;
    setToken(input.value.trim());
    close();
    after();
  };
  dialog = h(
    "dialog",
    { "aria-labelledby": "token-title", "aria-describedby": "token-why" },
    h(
      "form",
      { on: { submit: keep } },
      h("h2", { id: "token-title" }, "A token is needed"),
      h("p", { id: "token-why" }, why),
      field(
        "Token",
        input,
        "It stays in this tab and is forgotten when the tab is closed. Made by: quota-service token create",
      ),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "submit", class: "main" }, "Use it"),
        h("button", { type: "button", on: { click: close } }, "Cancel"),
      ),
    ),
  );
  declined = false;
  dialog.addEventListener("close", () => {
    declined = !isUsed;
  });
  document.body.append(dialog);
  dialog.showModal();
  input.focus();
}

/** The button in the head: says whether there is a token, and forgets it. */
export function tokenButton(after) {
  const button = h("button", { type: "button", id: "forget" });
  const show = () => {
    button.textContent = token() && !isRefused() ? "Forget token" : ASK;
  };
  const again = () => {
    show();
    after();
  };
  button.addEventListener("click", () => {
    if (isRefused()) return askForToken(INVALID, again);
    if (!token()) return askForToken("This service requires tokens: each question to it needs one.", again);
    setToken("");
    declined = false;
    again();
  });
  document.addEventListener("headroom:token", ({ detail }) => {
    show();
    if (!declined) askForToken(detail, again);
  });
  show();
  return button;
}
