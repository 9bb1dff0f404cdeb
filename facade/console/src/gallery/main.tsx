// The gallery: all components that pages share, with fixed data and without a gateway.
import { render } from "preact";

import { ApiError } from "../api/client";
import { Chart } from "../parts/chart";
import { ConfirmButton } from "../parts/confirm";
import { Empty } from "../parts/empty";
import { Failure } from "../parts/failure";
import { LimitBars } from "../parts/limit_bars";
import { LimitStates } from "../parts/limit_states";
import { Markdown } from "../parts/markdown";
import { Pager } from "../parts/pager";
import { Segments } from "../parts/segments";
import { Status } from "../parts/status";
import { Tiles } from "../parts/tiles";
import { UploadList } from "../parts/uploads";
import { count, duration, money } from "../parts/formats";
import { RequestTable } from "../pages/requests/table";
import { Timeline } from "../pages/requests/timeline";
import { ComparisonView } from "../pages/chat/comparison_view";
import { TurnView } from "../pages/chat/turn_view";
import { COMPARISON, LIMITS, LINES, REQUEST, REQUESTS, TEXT, TIMES, TURNS, USERS } from "./data";

const nothing = (): void => undefined;
const HOUR_S = 3600;

function Gallery() {
  return (
    <main class="gallery">
      <h1>Components of the console</h1>
      <section aria-label="Buttons">
        <h2>Buttons</h2>
        <div class="actions">
          <button type="button">Save</button>
          <button type="button" class="quiet">
            Refresh
          </button>
          <button type="button" class="quiet" aria-pressed="true">
            Pressed
          </button>
          <button type="button" class="danger">
            Delete
          </button>
          <button type="button" disabled>
            Disabled
          </button>
          <button type="button" class="quiet small">
            Small
          </button>
          <ConfirmButton label="Revoke" question="Revoke the key for good?" onConfirm={async () => undefined} />
          <Segments
            label="Period"
            choices={{ day: "24 hours", week: "7 days", month: "30 days" }}
            value={"week" as "day" | "week" | "month"}
            onChange={nothing}
          />
        </div>
      </section>
      <section aria-label="Fields">
        <h2>Fields</h2>
        <div class="filters">
          <label class="wide">
            Text
            <input type="search" value="lighthouse" />
          </label>
          <label>
            Status
            <select>
              <option>Any</option>
            </select>
          </label>
          <label>
            Cost from ($)
            <input placeholder="no limit" />
          </label>
          <label class="check">
            <input type="checkbox" checked />
            Follow new requests
          </label>
        </div>
      </section>
      <section aria-label="States">
        <h2>States</h2>
        <p class="actions">
          <Status tone="good">200</Status>
          <Status tone="warning">429</Status>
          <Status tone="bad">503</Status>
          <Status tone="quiet">revoked</Status>
        </p>
        <Failure error={new ApiError("model: there is no model 'fats'", 404, "model_not_found", "model", "req_1")} />
        <Empty title="No requests yet">
          <p>Send one in the chat; it appears here some seconds later.</p>
        </Empty>
      </section>
      <section aria-label="Figures">
        <h2>Figures</h2>
        <Tiles
          label="Figures"
          tiles={[
            { name: "Requests", value: count(1234) },
            { name: "Errors", value: count(12), hint: "1%" },
            { name: "Mean duration", value: duration(1234) },
            { name: "Tokens", value: count(1_234_567) },
            { name: "Spend", value: money(12.5) },
          ]}
        />
        <LimitBars label="Limits" limits={LIMITS} />
        <LimitStates limits={LIMITS} />
      </section>
      <section aria-label="Charts">
        <h2>Charts</h2>
        <div class="charts">
          <Chart title="Requests" times={TIMES} stepS={HOUR_S} lines={LINES} format={count} />
          <Chart title="Duration" times={TIMES} stepS={HOUR_S} lines={LINES.slice(0, 1)} format={(value) => duration(100 * value)} />
        </div>
      </section>
      <section aria-label="Requests">
        <h2>Requests</h2>
        <RequestTable requests={REQUESTS} users={USERS} scope="everyone" />
        <Pager
          label="Pages"
          pages={{
            items: REQUESTS,
            error: undefined,
            isLoaded: true,
            isLoading: false,
            number: 2,
            forward: nothing,
            back: nothing,
            reload: nothing,
          }}
        />
        <Timeline request={REQUEST} />
      </section>
      <section aria-label="Chat">
        <h2>Chat</h2>
        <div class="conversation">
          {TURNS.map((turn, index) => (
            <TurnView
              key={index}
              turn={turn}
              versions={{ number: 2, count: 3 }}
              isLast={index === TURNS.length - 1}
              isBusy={false}
              onEdit={nothing}
              onRegenerate={nothing}
              onResult={nothing}
              onVersion={nothing}
            />
          ))}
          <ComparisonView comparison={COMPARISON} isBusy={false} onRepeat={nothing} onAskAgain={nothing} />
        </div>
      </section>
      <section aria-label="Texts">
        <h2>Texts</h2>
        <Markdown text={TEXT} />
        <UploadList
          uploads={{
            list: [
              { id: 1, file: new File([], "harvest.md"), sent: 0.4 },
              { id: 2, file: new File([], "tides.pdf"), sent: 0, error: new Error("The file is larger than 512 MB.") },
            ],
            add: nothing,
            remove: nothing,
          }}
        />
      </section>
    </main>
  );
}

async function show(): Promise<void> {
  if (new URLSearchParams(location.search).get("fonts") === "fixed") {
    document.documentElement.classList.add("fixed-fonts");
    // The charts are drawn once, so the letters must be there before.
    await Promise.all(["KaTeX_SansSerif", "KaTeX_Typewriter"].map((name) => document.fonts.load(`12px ${name}`)));
  }
  render(<Gallery />, document.body);
}

void show();
