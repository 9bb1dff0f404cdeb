// All limits with what is left of them, and those of tags and end users.
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { LimitBars } from "../../parts/limit_bars";
import { MoreButton } from "../../parts/more_button";
import { usePaged } from "../../parts/paged";
import { peopleWords } from "../../words/people";
import { listLimits } from "./accounts";
import { SubjectLimits } from "./subjects";

const text = peopleWords.limits;

export function OtherLimits() {
  const limited = usePaged(listLimits, []);
  const bars = limited.items.flatMap(({ subject_kind: kind, subject_name: name, usage }) =>
    usage.map((one) => ({ ...one, subject: `${kind.replace("_", " ")} ${name}` })),
  );
  return (
    <>
      <section aria-labelledby="all-limits">
        <h2 id="all-limits">{text.all}</h2>
        <Failure error={limited.error} />
        {limited.isLoaded && bars.length === 0 && (
          <Empty title={text.none}>
            <p>{text.noneHint}</p>
          </Empty>
        )}
        <LimitBars label={text.all} limits={bars} />
        <MoreButton list={limited} label={text.more} />
      </section>
      <SubjectLimits />
    </>
  );
}
