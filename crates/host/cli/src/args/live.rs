//! The verbs of live links: what brings them up, changes them and looks at them.

use clap::Subcommand;

#[cfg(feature = "screen")]
use super::TopArgs;
use super::{
    DaemonArgs, FlowsArgs, ImportVerb, JournalVerb, KeygenArgs, PullArgs, RecordArgs, RecvArgs,
    RelayArgs, ReloadArgs, RunningArgs, SendArgs, ServiceVerb, SetRateArgs, SetupArgs, StatusArgs,
    TestArgs, UpArgs,
};
use super::{measure, node, relay, service, setup, ship};

/// The verbs that need the feature `live`.
#[derive(Debug, Subcommand)]
pub enum LiveCommand {
    /// Bring one end of a link up and keep it up until SIGTERM or Ctrl-C
    ///
    /// Creates the TUN device of FILE with its addresses and routes and carries its packets over
    /// the underlay, UDP or an Ethernet interface, to the peer, or to several who share the link.
    /// Needs root, or CAP_NET_ADMIN, and CAP_NET_RAW for Ethernet; once it is up, it keeps CAP_NET_ADMIN
    /// alone. At the end the device is
    /// removed and the counters are printed.
    #[command(after_help = node::UP_EXAMPLES)]
    Up(UpArgs),
    /// Make the files of both ends of a new link, or of a base and its stations, with keys
    ///
    /// Asks four questions, or takes four options, and writes a file and a key for each end, which only their owner
    /// may read. With --station this end is a base, and each station gets files of its own. Files that exist are
    /// kept unless --force is given.
    #[command(after_help = setup::SETUP_EXAMPLES)]
    Setup(SetupArgs),
    /// Make a key for one end of a secured link
    ///
    /// Writes a new private key to FILE, which only its owner may read, and prints the public key, which the other
    /// end has as `peer-key`.
    #[command(after_help = node::KEYGEN_EXAMPLES)]
    Keygen(KeygenArgs),
    /// Emulate a lossy link between two interfaces until SIGTERM or Ctrl-C
    ///
    /// Carries Ethernet frames between the two interfaces of FILE at the stated rate, delay and
    /// queue and loses some of them. Needs root, or CAP_NET_RAW. At the end it prints what was asked
    /// and what was delivered.
    #[command(after_help = node::AIR_EXAMPLES)]
    Air(RunningArgs),
    /// Split TCP connections: end each here and go on with another one, until SIGTERM or Ctrl-C
    ///
    /// What comes in on one passes on to the other, so each side of the relay repairs its own losses over its own
    /// round trip. The source hears acknowledgments of what has not arrived yet. One connection holds at most
    /// twice the pool; the end of one direction is passed on after its last byte, and a side that dies
    /// resets the other at once. At the end all are reset and the counters are printed; SIGUSR1 logs them.
    #[command(after_help = relay::EXAMPLES)]
    Relay(RelayArgs),
    /// Send files and folders to another host, over a path that loses packets
    ///
    /// `airlane recv` there prints a ticket, which is all that this end needs. What is sent is sealed, and as fast as the
    /// path carries it: the rate follows what arrives, and losses that do not grow with it change nothing. Every
    /// file is compared by its BLAKE3. Ended and started again with the same files, it goes on where it was.
    /// Source: CLAP-final, Gopal 2007, section 3.2.
    #[command(after_help = ship::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive what another host sends with `airlane send`
    ///
    /// Prints a ticket for the other end and waits. Whoever has the ticket may put files into FOLDER, and nowhere else,
    /// one sender at a time. What has come of files lies in .airlane-parts until all is here.
    #[command(after_help = ship::RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Check whether a link can come up, and say what to do where it cannot
    ///
    /// Tries rights, keys, interface, port, route and MTU as `airlane up` does and undoes them again;
    /// a peer with keys is asked for a handshake. Of a link that runs it says how each session stands, and why
    /// one has never come up.
    #[command(after_help = node::DOCTOR_EXAMPLES)]
    Doctor(DaemonArgs),
    /// Let a running link take over what changed in its file
    ///
    /// Keys, peers, their addresses, rates, services and classes change at once, and connections through
    /// links that stay go on. SIGHUP to `airlane up` does the same with the file that it was started with. What only a new start can change is named, and nothing is changed then.
    #[command(after_help = node::RELOAD_EXAMPLES)]
    Reload(ReloadArgs),
    /// Make a live file of what another tunnel was told
    #[command(subcommand, arg_required_else_help = true)]
    Import(ImportVerb),
    /// Change the rate of a running link
    ///
    /// Frames leave at it from now on: no new session, nothing lost. The file stays as it is; write there,
    /// too, what shall outlast a reload.
    #[command(after_help = service::SET_EXAMPLES)]
    Set(SetRateArgs),
    /// Change the services of a running link
    ///
    /// Nothing else is interrupted: connections through the other services go on. A service is used once
    /// both ends have it; until then, and once one end has removed it, its packets travel as those
    /// without a class. The file stays as it is; write there, too, what shall outlast a restart.
    #[command(subcommand, arg_required_else_help = true)]
    Service(ServiceVerb),
    /// Show what each service of a running link has carried, repaired and lost
    #[command(after_help = node::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Show which flows a running link knows, which service each gets, and why
    ///
    /// Without rules a link looks at what flows do. Each comes with the rule that would keep it where it is, as it stands in
    /// a file. At most 150 flows are told, those of the most bytes. Only root and the user of the link may ask.
    #[command(after_help = node::FLOWS_EXAMPLES)]
    Flows(FlowsArgs),
    /// Show what a flow to a host would be told that it may send
    ///
    /// That is what the service that it gets exports as a MAC does: what it took to send in the last 100 ms, how often it
    /// ran dry, and what finds room in its queue; and the least of that on its path, by a probe along it. `airlane send`
    /// goes by it. Source: CLF, Gopal 2007, section 3.3.
    #[command(after_help = node::PULL_EXAMPLES)]
    Pull(PullArgs),
    /// Watch a running link on the whole screen
    ///
    /// Per service and direction: packets, repairs, their cost, losses, round trip, queue and rates, once
    /// a second. Of several peers each has a line, and the arrow keys choose whose services are shown. f
    /// shows flows, where they go and why, in place of the rates. q, Esc or Ctrl-C ends.
    #[cfg(feature = "screen")]
    #[command(after_help = node::TOP_EXAMPLES)]
    Top(TopArgs),
    /// Measure what a file, web pages and voice get below a link and through it
    ///
    /// First run `airlane test --serve` at the other end. Then each application runs alone, and all of them
    /// at once: before, over the plain path to the peer, and after, through the link. The other end sends
    /// the file and the pages; voice goes both ways. Whatever else uses the link meanwhile is in the
    /// figures. The clocks of the ends need not agree.
    ///
    /// PEER is the link's name, or the address of the other end in the link. With an address that no link
    /// leads to, the plain path alone can be measured: `airlane test --serve ADDRESS` there, and here
    /// `airlane test ADDRESS --before`.
    #[command(after_help = measure::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Record what becomes of each frame of a running link
    ///
    /// Writes a trace to OUT until Ctrl-C: each frame sent with its size and what waited after it, each
    /// frame received, and by their numbers those that were lost. Nothing is sent for it. Record both ends
    /// at the same time and join the two (`airlane trace join`) to know both directions and the delays;
    /// one recording knows the losses on the way to its end. The link must be secured: the frames of other
    /// links are not all numbered.
    #[command(after_help = measure::RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Do again what a port did, from its journal
    #[command(subcommand, arg_required_else_help = true)]
    Journal(JournalVerb),
}
