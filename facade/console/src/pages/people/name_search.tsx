// A search for one subject by its whole name.
import { requestsWords } from "../../words/requests";

export function NameSearch({ label, onSearch }: { label: string; onSearch: (name: string) => void }) {
  return (
    <form
      class="actions"
      role="search"
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(event.currentTarget as HTMLFormElement);
        onSearch(String(data.get("name") ?? "").trim());
      }}
    >
      <label>
        {label}
        <input type="search" name="name" autocomplete="off" />
      </label>
      <button class="quiet">{requestsWords.filters.search}</button>
    </form>
  );
}
