//! Forms of Kueue's `CapacityProvider`.

use super::*;

#[tokio::test]
async fn an_older_draft_is_written_by_its_names_and_an_unknown_one_refused() {
    let older = stage(with_provider("managedFlavors").await, settings("capacity-provider")).await;
    older.publishes("capacityproviders", 40, 16).await;
    let unknown = stage(with_provider("flavorRefs").await, settings("auto")).await;
    unknown.rounds(1).await;
    unknown.beats_on().await;
    assert!(unknown.writes("capacityproviders").is_empty() && unknown.writes("clusterqueues").is_empty());
}

#[tokio::test]
async fn a_form_that_changes_with_an_upgrade_of_kueue_is_written_without_a_restart() {
    let stage = stage(with_provider("managedFlavors").await, settings("capacity-provider")).await;
    stage.publishes("capacityproviders", 40, 16).await;
    assert!(stage.fake.delete("capacityproviders", "", &stage.config.capacity_provider.to_string()));
    stage.fake.install_dynamic_quota("orchestratedFlavors");
    stage.publishes("capacityproviders", 40, 16).await;
    assert!(stage.object("capacityproviders").unwrap()["spec"]["orchestratedFlavors"].is_array());
}
