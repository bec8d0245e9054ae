// The page of ag_ui.py: AG-UI's HttpAgent keeps the messages, and an interrupt becomes two buttons.
import { HttpAgent } from "@ag-ui/client";

// The address holds the conversation's key, so a reload shows the same one.
const chat = location.hash.slice(1) || crypto.randomUUID();
location.hash = chat;
const query = `chat=${encodeURIComponent(chat)}`;
let underway = null; // the stream of a run that goes on after a reload
const read = async (url, options) => underway ?? fetch(url, options);
const agent = new HttpAgent({ url: "/agent", threadId: chat, fetch: read });
let waiting = []; // the interrupts that nobody has answered
let problem = "";

const add = (parent, tag, name, text = "") => {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text; // never innerHTML: a model wrote it
  return parent.appendChild(made);
};

function draw() {
  const main = document.querySelector("main");
  const typed = main.querySelector("input")?.value ?? "";
  main.replaceChildren();
  const results = Object.fromEntries(
    agent.messages.filter((row) => row.role === "tool").map((row) => [row.toolCallId, row.content]),
  );
  for (const message of agent.messages) {
    if (message.role !== "user" && message.role !== "assistant") continue;
    if (message.content) add(main, "p", message.role, message.content);
    for (const call of message.toolCalls ?? []) drawCall(main, call, results[call.id]);
  }
  if (problem) add(main, "p", "error", problem);
  const form = add(main, "form", "");
  const input = add(form, "input", "");
  input.id = "question";
  input.value = typed;
  if (agent.isRunning) {
    const button = add(form, "button", "", "Stop");
    button.type = "button";
    button.onclick = () => fetch(`/agent/stop?${query}`, { method: "POST" });
  } else add(form, "button", "", "Send");
  form.onsubmit = (event) => {
    event.preventDefault();
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: input.value });
    input.value = "";
    run();
  };
}

function drawCall(main, call, result) {
  const interrupt = waiting.find((each) => each.toolCallId === call.id);
  // What an interrupt shows is what will run, with the values of defaults.
  const args = interrupt ? JSON.stringify(interrupt.metadata.input) : call.function.arguments;
  const row = add(main, "div", "call", `${call.function.name} ${args}`);
  if (result !== undefined) row.textContent += ` → ${result}`;
  if (!interrupt) return;
  add(row, "p", "hint", interrupt.message);
  for (const [label, approved] of [["Approve", true], ["Reject", false]]) {
    add(row, "button", label.toLowerCase(), label).onclick = () => {
      interrupt.reply = { interruptId: interrupt.id, status: "resolved", payload: { approved } };
      if (waiting.every((each) => each.reply)) run(waiting.map((each) => each.reply));
    };
  }
}

async function run(resume) {
  problem = "";
  const observe = { onMessagesChanged: draw, onRunErrorEvent: ({ event }) => { problem = event.message; } };
  const finished = ({ event }) => { waiting = event.outcome?.interrupts ?? []; };
  const told = ({ event }) => { if (event.name === "Stopped") problem = "Stopped."; };
  try {
    const handlers = { ...observe, onRunStartedEvent: draw, onRunFinishedEvent: finished, onCustomEvent: told };
    await agent.runAgent({ resume }, handlers);
  } catch (error) {
    problem ||= String(error);
  }
  underway = null;
  draw();
}

async function begin() {
  const response = await fetch(`/agent/stream?${query}`);
  if (response.status !== 204) { // a run goes on, whose stream begins with the messages
    underway = response;
    return run();
  }
  const messages = await (await fetch(`/agent?${query}`)).json();
  waiting = messages.find((row) => row.activityType === "interrupt")?.content.interrupts ?? [];
  agent.setMessages(messages.filter((row) => row.role !== "activity"));
  draw();
}
begin();
