// Tasks of the server: a request, whose answer is lines of JSON, steps and then a result or an error.

export const MOST_BYTES = 20 * 2 ** 20;

/** Runs a task and returns its result; calls onStep with a text and the seconds so far. */
export async function run(task, given, { onStep = () => {}, signal } = {}) {
  const body = JSON.stringify(given);
  const bytes = new Blob([body]).size;
  if (bytes > MOST_BYTES) throw new Error(tooLarge(bytes));
  let response;
  try {
    response = await fetch(`/api/${task}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body, signal, cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer. Is abelnet explore still running?");
  }
  let rest = "";
  let last;
  const take = (line) => {
    if (!line.trim()) return;
    const message = JSON.parse(line);
    if (message.step !== undefined) onStep(message.step, message.seconds);
    else last = message;
  };
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  }
  take(rest);
  if (last?.error !== undefined) throw new Error(last.error);
  if (last?.result === undefined) throw new Error("The server ended the connection. Try again in a moment.");
  return last.result;
}

export function tooLarge(bytes) {
  return `The table has ${Math.round(bytes / 2 ** 20)} MB, and at most 20 MB can be learned from here. `
    + "Take a sample of its sets, or run abelnet learn FILE on the command line, which has no limit.";
}

/** A button that runs one task at a time, with its status beside it. */
export class Runner {
  constructor(button, status, cancel) {
    Object.assign(this, { button, status, cancel, control: null });
    cancel?.addEventListener("click", () => this.control?.abort());
  }

  get isBusy() { return this.control !== null; }

  /** Runs a task, unless one is running. */
  async run(task, given) {
    if (this.isBusy) return undefined;
    const control = new AbortController();
    this.control = control;
    this.button.setAttribute("aria-disabled", "true");
    const show = (text, seconds = 0) => {
      this.status.classList.add("busy");
      this.status.textContent = seconds >= 2 ? `${text}, ${Math.round(seconds)} s` : text;
      if (this.cancel) this.cancel.hidden = seconds < 2;
    };
    show("working");
    try {
      const result = await run(task, given, { onStep: show, signal: control.signal });
      this.status.textContent = "";
      return result;
    } catch (error) {
      this.status.textContent = error.name === "AbortError" ? "Canceled." : "";
      if (error.name === "AbortError") return undefined;
      throw error;
    } finally {
      this.control = null;
      this.status.classList.remove("busy");
      this.button.removeAttribute("aria-disabled");
      if (this.cancel) this.cancel.hidden = true;
    }
  }
}
