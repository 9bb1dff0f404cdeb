// The facts that the gateway remembers about the caller.
import { ConfirmButton } from "../../parts/confirm";
import { Empty } from "../../parts/empty";
import { Failure } from "../../parts/failure";
import { when } from "../../parts/formats";
import { useLoaded } from "../../parts/loading";
import { deleteProfile, getProfile } from "./memories";

export function Profile() {
  const { data: facts, error, reload } = useLoaded(getProfile, []);
  return (
    <section aria-labelledby="profile">
      <h2 id="profile">Profile</h2>
      <Failure error={error} />
      {facts?.length === 0 && (
        <Empty title="Nothing is known about you yet">
          <p>Facts appear here once you have told some in a remembered conversation.</p>
        </Empty>
      )}
      {facts !== undefined && facts.length > 0 && (
        <>
          <div class="scroll" tabIndex={0} role="region" aria-label="Facts">
            <table>
              <thead>
                <tr>
                  <th>Topic</th>
                  <th>Fact</th>
                  <th>Since</th>
                </tr>
              </thead>
              <tbody>
                {facts.map((fact) => (
                  <tr key={`${fact.topic}/${fact.sub_topic}/${fact.value}`}>
                    <td>
                      {fact.topic} / {fact.sub_topic}
                    </td>
                    <td>{fact.value}</td>
                    <td>{when(fact.updated_at)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="actions">
            <ConfirmButton
              label="Delete profile"
              question="Delete all facts about you? Conversations stay."
              onConfirm={async () => {
                await deleteProfile();
                reload();
              }}
            />
          </p>
        </>
      )}
    </section>
  );
}
