// Resets and top-ups of the budgets of a subject.
import { useState } from "preact/hooks";

import { ConfirmButton } from "../../parts/confirm";
import { Failure } from "../../parts/failure";
import { limitName, type LimitUsage } from "../../parts/limit_states";
import { peopleWords } from "../../words/people";
import { resetBudget, topUpBudget } from "../../admin/calls";

const text = peopleWords.limits.budget;

const isBudget = (one: LimitUsage): boolean => one.name.startsWith("spend_");

/** A form for the budgets among limits, whose endpoints are below a path. */
export function BudgetActions({
  path,
  limits,
  onChanged,
}: {
  path: string;
  limits: readonly LimitUsage[];
  onChanged: () => void;
}) {
  const budgets = limits.filter(isBudget);
  const [chosen, setChosen] = useState("");
  const [amount, setAmount] = useState("");
  const [error, setError] = useState<unknown>();
  const [done, setDone] = useState("");
  const [first] = budgets;
  if (first === undefined) return null;
  const budget = budgets.find((one) => one.name === chosen) ?? first;
  const label = limitName(budget.name);

  async function change(call: Promise<unknown>, message: string): Promise<void> {
    setError(undefined);
    setDone("");
    try {
      await call;
      setAmount("");
      setDone(message);
      onChanged();
    } catch (failure) {
      setError(failure);
    }
  }

  return (
    <form
      class="actions"
      aria-label={text.title}
      onSubmit={(event) => {
        event.preventDefault();
        void change(topUpBudget(path, budget.name, amount.trim()), text.added(label));
      }}
    >
      <label>
        {text.title}
        <select value={budget.name} onChange={(event) => setChosen(event.currentTarget.value)}>
          {budgets.map((one) => (
            <option key={one.name} value={one.name}>
              {limitName(one.name)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {text.amount}
        <input
          value={amount}
          required
          inputMode="decimal"
          autocomplete="off"
          onInput={(event) => setAmount(event.currentTarget.value)}
        />
      </label>
      <button>{text.topUp}</button>
      <ConfirmButton
        label={text.reset}
        name={label}
        question={text.resetQuestion(label)}
        onConfirm={() => change(resetBudget(path, budget.name), text.wasReset(label))}
      />
      <Failure error={error} />
      <p role="status">{done}</p>
    </form>
  );
}
