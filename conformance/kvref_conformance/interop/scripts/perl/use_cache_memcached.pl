# Cache::Memcached, with Storable and compression.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Cache::Memcached;
use Contract;

Contract::main(
    'Cache::Memcached',
    Cache::Memcached->VERSION,
    sub {
        my ( $host, $port, $timeout ) = @_;
        my $m = Cache::Memcached->new(
            { servers => ["$host:$port"], compress_threshold => 1000, select_timeout => $timeout } );
        return {
            set       => sub { $m->set(@_) },
            get       => sub { $m->get(@_) },
            delete    => sub { $m->delete(@_) },
            get_multi => sub { $m->get_multi(@_) },
            add       => sub { $m->add(@_) },
            replace   => sub { $m->replace(@_) },
            append    => sub { $m->append(@_) },
            prepend   => sub { $m->prepend(@_) },
            incr      => sub { $m->incr(@_) },
            decr      => sub { $m->decr(@_) },
        };
    }
);
