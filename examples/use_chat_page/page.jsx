// The page of use_chat.py. useChat keeps the messages, and each tool call of the agent is a part of one.
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

// The address holds the conversation's key, so a reload shows the same one.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;

const load = () => fetch(`/api/chat?chat=${id}`).then((response) => response.json());

function Tool({ part, decide }) {
  const args = JSON.stringify(part.input ?? {});
  return (
    <div className="call" data-state={part.state}>
      {part.toolName} {args}
      {part.state === "output-available" && <span> → {JSON.stringify(part.output)}</span>}
      {part.state === "output-error" && <span> → {part.errorText}</span>}
      {part.state === "output-denied" && <span> → rejected</span>}
      {part.state === "approval-requested" && (
        <span>
          <span className="hint">{part.approval.descriptor?.hint}</span>{" "}
          <button onClick={() => decide(part.approval.id, true)}>Approve</button>
          <button onClick={() => decide(part.approval.id, false)}>Reject</button>
        </span>
      )}
    </div>
  );
}

function Chat({ before }) {
  const [text, setText] = useState("");
  // Where nothing runs any more, the run may have ended since the messages were loaded.
  const read = async (url, options) => {
    const response = await fetch(url, options);
    if (response.status === 204) load().then(setMessages);
    return response;
  };
  const { messages, setMessages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    id,
    messages: before,
    resume: true, // a page that was reloaded in the middle of a run reads on
    transport: new DefaultChatTransport({ api: "/api/chat", fetch: read }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const runs = status === "submitted" || status === "streaming";
  const stop = () => fetch(`/api/chat/${id}/stop`, { method: "POST" });
  const decide = (request, approved) => addToolApprovalResponse({ id: request, approved });
  const send = (event) => {
    event.preventDefault();
    sendMessage({ text });
    setText("");
  };
  return (
    <>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, place) => {
            if (part.type === "dynamic-tool") return <Tool key={place} part={part} decide={decide} />;
            if (part.type === "data-stopped") return <p key={place} className="hint">Stopped.</p>;
            return part.type === "text" ? <p key={place}>{part.text}</p> : null;
          })}
        </section>
      ))}
      {error && <p className="error">{error.message}</p>}
      <form onSubmit={send}>
        <input id="question" value={text} onChange={(event) => setText(event.target.value)} />
        {runs ? <button type="button" onClick={stop}>Stop</button> : <button>Send</button>}
      </form>
    </>
  );
}

function Page() {
  const [before, setBefore] = useState(null);
  useEffect(() => {
    load().then(setBefore);
  }, []);
  return before && <Chat before={before} />;
}

createRoot(document.getElementById("root")).render(<Page />);
