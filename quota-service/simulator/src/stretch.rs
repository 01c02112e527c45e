//! Elastic spot jobs, made of those of a trace that knows none.

use crate::elastic::draws::some;
use crate::elastic::profiles::made;
use crate::world::World;
use placement::fleet::{GpuRequest, PodRequest};
use placement::pool::Elastic;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use vocab::TaskClass;

/// Which jobs are elastic, and how.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Of the spot jobs with whole GPUs.
    pub share: f64,
    /// They come in pods of one GPU, and neither shrink nor grow.
    pub control: bool,
    /// The profile of their speeds; none where they are linear.
    pub model: Option<&'a str>,
    pub seed: u64,
}

fn speeds_of(model: &str) -> Result<Vec<u32>, String> {
    let known = made();
    let speeds = known.get(model).ok_or_else(|| {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        format!("{model:?} is no model; there are {}", names.join(", "))
    })?;
    Ok(speeds.iter().map(|speed| u32::try_from(*speed).unwrap_or(u32::MAX)).collect())
}

impl World {
    /// Makes spot jobs elastic: their pods have one GPU each, they run on one of them and on twice as many as they ask for
    /// (Cornucopia §4.3), as far as the model is measured. A job that asks for more than it is measured on stays as it is.
    ///
    /// # Errors
    /// The model is not known.
    pub fn stretch(&mut self, how: &Stretch<'_>) -> Result<(), String> {
        let speeds = how.model.map(speeds_of).transpose()?;
        let measured = speeds.as_ref().map_or(u32::MAX, |speeds| speeds.len() as u32);
        let is_whole = |gpus: GpuRequest| matches!(gpus, GpuRequest::Whole(1..));
        let jobs = self.jobs.iter().zip(0..);
        let of_spot =
            jobs.filter(|(job, _)| job.request.gang.class == TaskClass::Spot && is_whole(job.request.gang.pod.gpus));
        let of_spot = of_spot.map(|(_, number)| number).collect();
        for number in some(of_spot, how.share, &mut ChaCha8Rng::seed_from_u64(how.seed)) {
            let request = &mut self.jobs[number].request;
            let GpuRequest::Whole(gpus) = request.gang.pod.gpus else { continue };
            let (pod, pods) = (request.gang.pod, request.gang.pods * u32::from(gpus));
            if pods > measured.min(Elastic::MOST / 2) {
                continue;
            }
            request.gang.pod = PodRequest {
                gpus: GpuRequest::Whole(1),
                cpu_milli: pod.cpu_milli / u64::from(gpus),
                memory_mib: pod.memory_mib / u64::from(gpus),
                affinity: None,
                ..pod
            };
            request.gang.pods = pods;
            if how.control {
                continue;
            }
            let elastic = Elastic::new(1, pods, 2 * pods, speeds.clone());
            let refused = |fault| format!("job {} cannot be elastic: {fault}", request.gang.task);
            request.elastic = Some(elastic.map_err(refused)?);
        }
        Ok(())
    }
}
